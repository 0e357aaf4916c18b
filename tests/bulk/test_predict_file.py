"""A file of labels for a file of texts: interrupted anywhere, it ends as if nothing had been."""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import json
import warnings

import numpy as np
import pytest
from model.test_storage import NUM_LABELS, make_model
from model.tiny import random_texts
from scipy.sparse import load_npz

from primexmc.bulk import part
from primexmc.bulk.asking import Wish
from primexmc.bulk.per_query import QueryFilter
from primexmc.bulk.predict_file import predict_file, predict_stream
from primexmc.bulk.questions import Columns
from primexmc.data.corpus import DataWarning
from primexmc.errors import UserError
from primexmc.model.calibration import Calibration
from primexmc.model.selection import Selection

TEXTS = ["", *random_texts(3, 40), "red boat \u2028 x", "tab\there"]
FORMATS = ("jsonl", "tsv", "npz", "parquet")


class Stopped(BaseException):
    """As kill -9: nothing gets a chance to clean up."""


@pytest.fixture(scope="module")
def model():
    made = make_model()
    made.calibrations = {"theta": Calibration((-1.0, -0.2, 0.5, 3.0, 0.1, -0.4))}
    return made


@pytest.fixture(autouse=True)
def notes_at_once(monkeypatch):
    monkeypatch.setattr(part, "SECONDS_BETWEEN_NOTES", 0.0)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = [{"uid": f"q{number}", "text": text} for number, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def wish(format="jsonl", **more):
    return Wish(format=format, **({"top": 3, "batch_size": 4} | more))


def content_of(path):
    """What a reader would find in it."""
    if path.suffix == ".npz":
        matrix = load_npz(path)
        matrix.check_format()
        return matrix.toarray().tolist()
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path).to_pylist()
    return path.read_text(encoding="utf-8")


def stop_after(batches):
    """A progress that kills the run."""
    seen = []

    def progress(done, before):
        seen.append(done)
        if len(seen) == batches:
            raise Stopped

    return progress


def kill(run):
    """Runs until it is stopped, and leaves the files as the kill left them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part.Part, "remove", lambda self: None)
        with pytest.raises(Stopped):
            run()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("batches", [1, 5])
def test_killed_and_continued_it_is_the_same_file(model, source, tmp_path, format, batches):
    whole, place = tmp_path / f"whole.{format}", tmp_path / f"x.{format}"
    assert predict_file(Selection(model), source, whole, wish(format)) == len(TEXTS)
    kill(lambda: predict_file(Selection(model), source, place, wish(format), progress=stop_after(batches)))
    assert not place.exists()
    with (tmp_path / f"x.{format}.part").open("ab") as stream:
        stream.write(b"half a r")  # what was on its way when it was killed
    asked = []
    selection = Selection(model)
    predict = selection.predict
    selection.predict = lambda texts, *rest: asked.extend(texts) or predict(texts, *rest)
    assert predict_file(selection, source, place, wish(format), resume=True) == len(TEXTS)
    assert asked == TEXTS[4 * batches :], "what is done is not done again"
    assert content_of(place) == content_of(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["texts.jsonl", whole.name, place.name])


@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_the_very_end(model, source, tmp_path, format, monkeypatch):
    place = tmp_path / f"x.{format}"
    predict_file(Selection(model), source, tmp_path / f"whole.{format}", wish(format))
    with monkeypatch.context() as patch:
        patch.setattr("primexmc.bulk.predict_file._put_in_place", lambda *_: stop_after(1)(0, 0))
        kill(lambda: predict_file(Selection(model), source, place, wish(format)))
    selection = Selection(model)
    selection.predict = None  # nothing is left to predict
    assert predict_file(selection, source, place, wish(format), resume=True) == len(TEXTS)
    assert content_of(place) == content_of(tmp_path / f"whole.{format}")


def test_rows_say_what_the_model_says(model, source, tmp_path):
    """Every format against `PrimeModel.predict`, text by text."""
    expected = [model.predict([text], 3)[0] for text in TEXTS]
    for format in FORMATS:
        predict_file(Selection(model), source, tmp_path / f"x.{format}", wish(format))
    lines = [json.loads(line) for line in content_of(tmp_path / "x.jsonl").split("\n")[:-1]]
    assert [(line["uid"], line["text"]) for line in lines] == [(f"q{n}", text) for n, text in enumerate(TEXTS)]
    assert list(lines[1]) == ["uid", "text", "labels"]
    assert list(lines[1]["labels"][0]) == ["label", "uid", "id", "score"]
    with (tmp_path / "x.tsv").open(encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream, delimiter="\t"))
    assert [(int(row["query"]), int(row["rank"]), row["query_uid"]) for row in table] == [
        (number + 1, rank + 1, f"q{number}") for number, row in enumerate(expected) for rank in range(len(row))
    ]
    rows, matrix = content_of(tmp_path / "x.parquet"), np.array(content_of(tmp_path / "x.npz"))
    assert matrix.shape == (len(TEXTS), NUM_LABELS)
    for number, answers in enumerate(expected):
        assert [(one["id"], one["uid"], one["label"]) for one in lines[number]["labels"]] == [
            (answer.id, answer.uid, answer.label) for answer in answers
        ]
        assert rows[number]["uid"] == f"q{number}" and rows[number]["query"] == number + 1
        assert [one["id"] for one in rows[number]["labels"]] == [answer.id for answer in answers]
        for answer in answers:
            assert matrix[number, answer.id] == pytest.approx(answer.score, abs=1e-6)
        assert np.count_nonzero(matrix[number]) == len(answers)


def test_probabilities_are_added_where_asked_for(model, source, tmp_path):
    for format in FORMATS:
        predict_file(Selection(model), source, tmp_path / f"x.{format}", wish(format, probability=True))
    lines = [json.loads(line) for line in content_of(tmp_path / "x.jsonl").split("\n")[:-1]]
    assert lines[0]["labels"] == []
    for line, row in zip(lines, content_of(tmp_path / "x.parquet"), strict=True):
        for rank, (one, other) in enumerate(zip(line["labels"], row["labels"], strict=True), start=1):
            score, log = one["score"], np.log(rank)
            logit = -1 - 0.2 * log + 0.5 / rank + score * (3 + 0.1 * log - 0.4 / rank)
            assert one["probability"] == pytest.approx(1 / (1 + np.exp(-logit)), abs=2e-6)
            assert other["probability"] == pytest.approx(one["probability"], abs=2e-6)
    header = content_of(tmp_path / "x.tsv").split("\n")[0].split("\t")
    assert header == ["query", "rank", "score", "uid", "label", "text", "probability", "query_uid"]


def in_mode(mode):
    model = make_model()
    model.mode = mode
    return model


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda: {"wish": wish(top=4)}, "--top"),
        (lambda: {"wish": wish("tsv")}, "--format"),
        (lambda: {"selection": Selection(make_model(seed=1))}, "model"),
        (lambda: {"selection": Selection(in_mode("all"))}, "--mode"),
        (lambda: {"selection": Selection(make_model(), blocked=["last"])}, "--allow or --block"),
        (lambda: {"selection": Selection(make_model(), threshold=0.5)}, "--threshold"),
        (lambda: {"wish": wish(columns=Columns(text="text"))}, "set of columns"),
    ],
)
def test_another_question_is_not_continued(source, tmp_path, change, named):
    values = {"selection": Selection(make_model()), "wish": wish()}
    place = tmp_path / "x"
    kill(lambda: predict_file(values["selection"], source, place, values["wish"], progress=stop_after(2)))
    values |= change()
    with pytest.raises(UserError, match=f"begun with another {named}"):
        predict_file(values["selection"], source, place, values["wish"], resume=True)
    assert json.loads((tmp_path / "x.part.json").read_text())["rows"] == 8, "what is there stays"


def test_other_texts_are_not_continued(model, source, tmp_path):
    place = tmp_path / "x"
    kill(lambda: predict_file(Selection(model), source, place, wish(), progress=stop_after(3)))
    (tmp_path / "other.jsonl").write_text('{"uid": 1, "text": "x"}\n' * 20)
    with pytest.raises(UserError, match="not those of the run before"):
        predict_file(Selection(model), str(tmp_path / "other.jsonl"), place, wish(), resume=True)
    (tmp_path / "short.jsonl").write_text('{"uid": 1, "text": "x"}\n' * 5)
    with pytest.raises(UserError, match="5 texts, but 12 were done before"):
        predict_file(Selection(model), str(tmp_path / "short.jsonl"), place, wish(), resume=True)


def test_an_error_on_the_way_loses_nothing(model, tmp_path):
    lines = [json.dumps({"text": f"red boat {number}"}) for number in range(200)]
    source = tmp_path / "x.jsonl"
    source.write_text("\n".join([*lines[:150], "{broken"]))
    with pytest.raises(
        UserError, match=r"line 151: not valid JSON.* 148 texts are done; the same command with --resume"
    ):
        predict_file(Selection(model), str(source), tmp_path / "out", wish())
    source.write_text("\n".join(lines))
    assert predict_file(Selection(model), str(source), tmp_path / "out", wish(), resume=True) == 200
    found = [json.loads(line)["text"] for line in (tmp_path / "out").read_text().split("\n")[:-1]]
    assert found == [f"red boat {number}" for number in range(200)]


def test_without_resume_it_begins_afresh_and_says_so(model, source, tmp_path):
    place = tmp_path / "x"
    kill(lambda: predict_file(Selection(model), source, place, wish(), progress=stop_after(2)))
    with pytest.warns(DataWarning, match="begun afresh"):
        assert predict_file(Selection(model), source, place, wish()) == len(TEXTS)
    assert len(place.read_text(encoding="utf-8").split("\n")) == len(TEXTS) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert predict_file(Selection(model), source, place, wish(), resume=True) == len(TEXTS), "nothing to resume"


def test_a_damaged_note_is_said(model, source, tmp_path):
    place = tmp_path / "x"
    kill(lambda: predict_file(Selection(model), source, place, wish(), progress=stop_after(2)))
    (tmp_path / "x.part").write_bytes(b"")
    with pytest.raises(UserError, match=r"x\.part\.json: damaged"):
        predict_file(Selection(model), source, place, wish(), resume=True)


def test_two_at_once_are_refused(model, source, tmp_path):
    with (tmp_path / "x.part").open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another run is writing it"):
            predict_file(Selection(model), source, tmp_path / "x", wish())


@pytest.mark.parametrize("format", FORMATS)
def test_no_texts_at_all(model, tmp_path, format):
    (tmp_path / "none.txt").write_bytes(b"")
    assert predict_file(Selection(model), str(tmp_path / "none.txt"), tmp_path / f"x.{format}", wish(format)) == 0
    found = content_of(tmp_path / f"x.{format}")
    assert found == ("query\trank\tscore\tuid\tlabel\ttext\n" if format == "tsv" else "" if format == "jsonl" else [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.txt", f"x.{format}"]


def test_filters_by_number_by_uid_and_by_column(model, tmp_path):
    best = model.predict(["red boat"], 2)[0]
    (tmp_path / "filter.txt").write_text(f"2 {best[0].uid}\n\n2 no such label\nq3\t{best[1].uid}\n")
    (tmp_path / "lines.txt").write_text("red boat\nred boat\n")
    rows = [{"id": "q3", "text": "red boat"}, {"id": "q4", "text": "red boat", "not": best[0].uid}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"not": None} | row) + "\n" for row in rows))
    filters = QueryFilter(model.labels, tmp_path / "filter.txt")

    def answers(source, columns):
        said = []
        asked = dataclasses.replace(wish(top=2), columns=columns)
        predict_stream(Selection(model), str(tmp_path / source), said.append, asked, filters=filters)
        return [[label["id"] for label in json.loads(line)["labels"]] for line in "".join(said).split("\n")[:-1]]

    first, second = answers("lines.txt", Columns())
    assert first == [answer.id for answer in best] and best[0].id not in second and second[0] == best[1].id
    first, second = answers("rows.jsonl", Columns(filter="not"))
    assert first[0] == best[0].id and best[1].id not in first
    assert second[0] == best[1].id and best[0].id not in second


def test_a_filter_that_is_none(model, tmp_path):
    (tmp_path / "filter.txt").write_text("12\n")
    with pytest.raises(UserError, match=r'filter\.txt, line 1: expected "row label"'):
        QueryFilter(model.labels, tmp_path / "filter.txt")
