"""Made-up files in each data set's published layout train through its preset, with an encoder of a few numbers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from model import tiny
from scipy.sparse import csr_matrix, save_npz

from primexmc.cli import main
from primexmc.config import Settings, flatten
from primexmc.model.description import read_description
from primexmc.presets import load_preset

NUM_LABELS, NUM_TRAIN, NUM_TEST = 12, 40, 10


def made_up(seed):
    """Queries are (title, content, labels); a label is a thing, and a query names the things of its labels."""
    rng = np.random.default_rng(seed)
    things = rng.choice(tiny.THINGS, (NUM_LABELS, 2))
    labels = [(" ".join(pair), "a painting of the " + pair[0]) for pair in things]

    def queries(count):
        drawn = [sorted(rng.choice(NUM_LABELS, 2, replace=False).tolist()) for _ in range(count)]
        return [(" and ".join(labels[i][0] for i in ids), "red and old", ids) for ids in drawn]

    return labels, {"trn": queries(NUM_TRAIN), "tst": queries(NUM_TEST), "val": queries(NUM_TEST)}


def write_json(path, *, filters="pairs", parts=("trn", "tst")):
    """The repository's raw text: trn, tst and lbl as JSON lines, and pairs to filter, or empty files for them."""
    labels, queries = made_up(0)
    rows = [{"uid": f"L{i}", "title": title, "content": content} for i, (title, content) in enumerate(labels)]
    write_lines(path / "lbl.json.gz", map(json.dumps, rows))
    for part in parts:
        rows = [
            {"uid": f"{part}{i}", "title": title, "content": content, "target_ind": ids, "target_rel": [1.0] * len(ids)}
            for i, (title, content, ids) in enumerate(queries[part])
        ]
        write_lines(path / f"{part}.json.gz", map(json.dumps, rows))
    if filters:
        write_filters(path, filters == "pairs")


def write_matrices(path, *, text):
    """The older layout: a label matrix, as text or npz, beside the raw texts."""
    labels, queries = made_up(1)
    (path / "raw").mkdir()
    write_lines(path / "raw" / "Y.txt", (title for title, _ in labels))
    for part in ("trn", "tst"):
        rows = [ids for _, _, ids in queries[part]]
        write_lines(path / "raw" / f"{part}_X.txt", (title for title, _, _ in queries[part]))
        if text:
            lines = (" ".join(f"{i}:1.00000" for i in ids) for ids in rows)
            write_lines(path / f"{part}_X_Y.txt", [f"{len(rows)} {NUM_LABELS}", *lines])
        else:
            where = (np.repeat(np.arange(len(rows)), [len(ids) for ids in rows]), np.concatenate(rows))
            matrix = csr_matrix((np.ones(len(where[0])), where), shape=(len(rows), NUM_LABELS))
            save_npz(path / f"Y.{part}.npz", matrix)
    write_filters(path, text)


def write_filters(path, pairs):
    """Pairs that are not the query's own labels."""
    (path / "filter_labels_train.txt").write_text("0 3\n1 4\n" if pairs else "")
    (path / "filter_labels_test.txt").write_text("0 5\n" if pairs else "")


def write_lines(path, lines):
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


LAYOUTS = {
    "lf-amazontitles-131k": lambda path: write_json(path),
    "lf-amazon-131k": lambda path: write_json(path),
    "lf-amazontitles-1.3m": lambda path: write_matrices(path, text=True),
    "lf-wikititles-500k": lambda path: write_matrices(path, text=False),
    "lf-wikipedia-500k": lambda path: write_json(path, filters="empty"),
    "lf-wikiseealso-320k": lambda path: write_json(path),
    "wordnet": lambda path: write_json(path, filters=None),
    "gutenberg": lambda path: write_json(path, filters=None),
    "tate": lambda path: write_json(path, filters=None),
    "msdocs-seealso": lambda path: write_json(path),
    "eurlex57k": lambda path: write_json(path, filters=None, parts=("trn", "val", "tst")),
}
PRESETS = [*LAYOUTS, *(f"{name}-lite" for name in LAYOUTS if name.startswith("lf-"))]
SMALL = {"training.epochs": 1, "training.batch_size": 16, "training.threads": 1, "training.device": "cpu"}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    return tiny.save_hugging_face(tmp_path_factory.mktemp("encoder"), "distilbert", max_position_embeddings=256)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMEXMC_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("preset", PRESETS)
def test_trains_and_evaluates(preset, encoder, tmp_path):
    data, model = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    LAYOUTS[preset.removesuffix("-lite")](data)
    changed = SMALL | {"encoder.name": str(encoder)}
    values = [word for key, value in changed.items() for word in ("--set", f"{key}={value}")]
    assert main(["train", str(data), "--out", str(model), "--preset", preset, "--quiet", *values]) == 0
    assert main(["evaluate", str(model), str(data), "--json", str(tmp_path / "scores.json")]) == 0
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["queries"] == NUM_TEST and set(scores["buckets"]) == {"head", "torso", "tail"}
    description = read_description(model)
    reached = dict(flatten(Settings.from_dict(description["settings"], "model").to_dict()))
    wanted = dict(flatten(load_preset(preset))) | changed
    assert {key: reached[key] for key in wanted} == wanted
    assert description["num_labels"] == NUM_LABELS and description["num_train_queries"] == NUM_TRAIN
    texts = [json.loads(line) for line in (model / "labels.jsonl").read_text().splitlines()]
    titles_only = reached["data.fields"] == "title" or (data / "raw").is_dir()
    assert any("painting" in str(label) for label in texts) is not titles_only
