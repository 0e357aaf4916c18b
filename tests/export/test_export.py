"""What other programs find in an export is what the model has."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from model.test_storage import NAMES, NUM_LABELS, make_model
from model.tiny import random_texts, save_hugging_face

from primexmc.cli import main
from primexmc.config import EncoderSettings
from primexmc.errors import UserError
from primexmc.export.export import FORMS, export
from primexmc.model.encoder import load_encoder
from primexmc.model.model import PrimeModel

TEXTS = ["", "boat", *random_texts(0, 20), "red boat " * 30, "castle, " * 40]


def made(tmp_path, kind, pooling="mean", **values):
    if kind == "static":
        return make_model(**values)
    source = save_hugging_face(tmp_path / "source", kind)
    encoder = load_encoder(EncoderSettings(name=str(source), pooling=pooling))
    return make_model(encoder=encoder, **{"encoder.name": str(source), "encoder.pooling": pooling} | values)


@pytest.mark.parametrize("kind", ["static", "bert"])
def test_sentence_transformers_embeds_identically_and_finds_the_same_neighbours(tmp_path, kind):
    library = pytest.importorskip("sentence_transformers")
    model = made(tmp_path, kind, **{"data.query_tokens": 12, "encoder.query_prefix": "query: "})
    said = export(model, "sentence-transformers", str(tmp_path / "out"))
    theirs = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    ours = model.encode(TEXTS)
    found = theirs.encode(TEXTS)
    np.testing.assert_allclose(found, ours, atol=1e-5)
    z_LD = model.prototypes_LD.numpy()
    assert (np.argsort(-found @ z_LD.T)[:, :3] == np.argsort(-ours @ z_LD.T)[:, :3]).all()
    assert str(tmp_path / "out") in said


@pytest.mark.parametrize(("kind", "pooling"), [("static", "mean"), ("bert", "mean"), ("distilbert", "cls")])
@pytest.mark.filterwarnings("ignore")
def test_onnx_encodes_as_torch_does(tmp_path, kind, pooling):
    onnxruntime = pytest.importorskip("onnxruntime")
    from tokenizers import Tokenizer

    model = made(tmp_path, kind, pooling, **{"data.query_tokens": 12, "encoder.query_prefix": "query: "})
    said = export(model, "onnx", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "model.onnx",
        "tokenizer.json",
        "primexmc_encoder.json",
    }
    assert float(re.search(r"at most ([^ ]+)\.$", said)[1]) < 1e-5
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    prefix = json.loads((tmp_path / "out" / "primexmc_encoder.json").read_text())["query_prefix"]
    for batch in (TEXTS, ["boat"], ["old castle"] * 3):
        encodings = tokenizer.encode_batch([prefix + text for text in batch])
        inputs = {
            "input_ids": np.array([one.ids for one in encodings]),
            "attention_mask": np.array([one.attention_mask for one in encodings]),
        }
        [found] = session.run(["sentence_embedding"], inputs)
        np.testing.assert_allclose(found, model.encode(batch), atol=1e-5)


def test_an_onnx_model_that_differs_is_not_left_there(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr("primexmc.export.onnx._write", lambda *_: None)
    monkeypatch.setattr("primexmc.export.onnx._difference", lambda *_: 0.5)
    with pytest.raises(UserError, match=r"differs from torch by 0\.5"):
        export(make_model(), "onnx", str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_parquet_holds_every_label(tmp_path):
    from pyarrow import parquet

    model = make_model()
    export(model, "parquet", str(tmp_path / "labels.parquet"))
    rows = parquet.read_table(tmp_path / "labels.parquet").to_pylist()
    assert [row["id"] for row in rows] == list(range(NUM_LABELS))
    assert [row["name"] for row in rows] == NAMES and rows[3]["uid"] == "uid 3" and rows[1]["text"] == "boatboat"
    assert [row["train_queries"] for row in rows] == model.label_counts_L.tolist()
    np.testing.assert_array_equal(np.array([row["vector"] for row in rows], dtype=np.float32), model.prototypes_LD)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_milvus_gives_the_same_best_labels(tmp_path):
    pymilvus = pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    model, place = make_model(), str(tmp_path / "labels.db")
    export(model, "milvus", f"{place}#mine")
    with pytest.raises(UserError, match='a collection "mine" already'):
        export(model, "milvus", f"{place}#mine")
    client = pymilvus.MilvusClient(uri=place)
    client.load_collection("mine")
    texts = ["red boat", "old castle of a horse", "a ship"]
    answers = client.search("mine", data=model.encode(texts).tolist(), limit=5, output_fields=["uid", "name"])
    for found, expected in zip(answers, model.predict(texts, 5), strict=True):
        assert [hit["id"] for hit in found] == [answer.id for answer in expected]
        assert [hit["entity"]["uid"] for hit in found] == [answer.uid for answer in expected]
        assert [hit["entity"]["name"] for hit in found] == [answer.label for answer in expected]
        assert [hit["distance"] for hit in found] == pytest.approx([answer.score for answer in expected], abs=1e-5)
    client.close()


@pytest.mark.parametrize(
    ("to", "place", "sentence"),
    [
        ("onyx", "x", 'no form of export.*Did you mean "onnx"'),
        ("parquet", "", "Name a place"),
        ("sentence-transformers", "full", "something is there already"),
        ("parquet", "full", "a directory"),
        ("hub", "no-owner", "owner/name"),
    ],
)
def test_what_cannot_be_exported(tmp_path, monkeypatch, to, place, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(UserError, match=sentence):
        export(make_model(), to, place)
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "file"]


class Hub:
    """Stands in for huggingface_hub: keeps what is uploaded in a directory, and gives it back."""

    def __init__(self, place):
        self.place, self.made = place, []

    def create_repo(self, name, *, private, exist_ok):
        self.made.append((name, private, exist_ok))

    def upload_folder(self, *, repo_id, folder_path, commit_message):
        import shutil

        shutil.copytree(folder_path, self.place / repo_id)

    def snapshot_download(self, name, *, revision, ignore_patterns):
        if not (self.place / name).exists():
            raise OSError(f"404: {name} at {revision}\nand more")
        return str(self.place / name)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    made = Hub(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: made)
    monkeypatch.setattr("huggingface_hub.snapshot_download", made.snapshot_download)
    return made


def test_to_the_hub_and_back(tmp_path, hub, capsys):
    model = make_model()
    model.save(tmp_path / "model")
    assert main(["export", str(tmp_path / "model"), "--to", "hub", "--out", "me/boats"]) == 0
    assert "hf://me/boats" in capsys.readouterr().out and hub.made == [("me/boats", True, True)]
    for address in ("hf://me/boats", "hf://me/boats@main"):
        assert PrimeModel.load(address, device="cpu").predict(TEXTS) == model.predict(TEXTS)
    assert main(["predict", "hf://me/boats", "--top", "1", "/dev/null"]) == 0


@pytest.mark.parametrize("address", ["hf://me/nothing", "hf://me", "hf://a/b/c", "hf://"])
def test_what_is_not_on_the_hub(hub, address):
    with pytest.raises(UserError, match=r"cannot be had from the Hugging Face hub \(404|expected hf://owner/name"):
        PrimeModel.load(address)


def test_every_form_is_in_the_help(capsys):
    from primexmc.cli.export import EPILOG
    from primexmc.cli.export import FORMS as TYPED

    assert tuple(FORMS) == TYPED and all(f"\n  {form} " in EPILOG for form in FORMS)
