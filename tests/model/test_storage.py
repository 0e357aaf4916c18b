"""A model on disk: what is read is what was written, and what is no model is said to be none."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from model.tiny import DIM, random_texts, save_hugging_face, static_encoder
from safetensors import SafetensorError
from safetensors.torch import save_file
from scipy.sparse import csr_matrix

from primexmc.config import EncoderSettings, Settings
from primexmc.data.corpus import Labels
from primexmc.data.texts import Texts
from primexmc.data.tfidf import TfIdf
from primexmc.errors import UserError
from primexmc.fusion.blend import Blend, Weights
from primexmc.fusion.lexical import Lexical
from primexmc.model.calibration import Calibration
from primexmc.model.centroids import Centroids
from primexmc.model.encoder import load_encoder
from primexmc.model.memory import Memory
from primexmc.model.model import PrimeModel
from primexmc.model.network import PrimeNetwork

NUM_LABELS = 8
NAMES = ["boat", "boat", "Ünï ☃", "line\u2028separator", 'quote " and \\', "", "tab\there", "last"]


def make_model(seed=0, encoder=None, **values):
    """Untrained, with random prototypes."""
    torch.manual_seed(seed)
    settings = Settings().with_values({"prototypes.num_free_vectors": 3, "prototypes.width": 8} | values, "test")
    encoder = encoder or static_encoder(seed=seed)
    network = PrimeNetwork(encoder, settings.prototypes, torch.randint(0, 3, (NUM_LABELS,)))
    z = torch.nn.functional.normalize(torch.randn(NUM_LABELS, DIM), dim=1)
    return PrimeModel(
        settings=settings,
        labels=Labels([f"uid {n}" for n in range(NUM_LABELS)], NAMES, [name * 2 for name in NAMES]),
        label_counts_L=np.arange(NUM_LABELS),
        num_train_queries=77,
        network=network,
        prototypes_LD=z,
        centroids=Centroids(torch.randn(NUM_LABELS, DIM), torch.arange(NUM_LABELS) % 3 > 0),
        memory=make_memory(),
        lexical=make_lexical(),
        blend=Blend({"memory": Weights(memory=0.2), "all": Weights(0.1, 0.1, 0.03)}, "theta"),
        facts={"corpus": "made up", "validation": {"P@1": 12.5}},
    )


def make_lexical():
    """Four words, one of which says nothing."""
    weights = np.array(np.arange(4 * NUM_LABELS).reshape(4, NUM_LABELS) % 5, dtype=np.float32)
    weights[3] = 0
    return Lexical(TfIdf(["a red boat", "the red ship"]), csr_matrix(weights), -np.ones(NUM_LABELS, np.float32))


def make_memory():
    """Three queries: one with two labels, one with none, one with the last label."""
    positives = csr_matrix(([1.0] * 3, [2, 4, NUM_LABELS - 1], [0, 2, 2, 3]), shape=(3, NUM_LABELS), dtype=np.float32)
    return Memory(torch.randn(3, DIM).half(), positives, Texts.of(["a red boat", "", "Ünï ☃"]))


def assert_same(one, other):
    ours, theirs = one.network.state_dict(), other.network.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert torch.equal(one.prototypes_LD, other.prototypes_LD)
    assert torch.equal(one.centroids.c_LD, other.centroids.c_LD)
    assert torch.equal(one.centroids.has_L, other.centroids.has_L)
    for column in ("uids", "names", "texts"):
        assert list(getattr(one.labels, column)) == list(getattr(other.labels, column))
    assert np.array_equal(one.label_counts_L, other.label_counts_L)
    assert one.settings == other.settings and one.facts == other.facts
    assert one.num_train_queries == other.num_train_queries and one.calibrations == other.calibrations
    assert torch.equal(one.memory.h_ND, other.memory.h_ND)
    assert (one.memory.positives != other.memory.positives).nnz == 0
    assert list(one.memory.texts) == list(other.memory.texts)
    assert one.blend == other.blend
    assert (one.lexical.weights_WL != other.lexical.weights_WL).nnz == 0
    assert np.array_equal(one.lexical.bias_L, other.lexical.bias_L)
    texts = random_texts(5, 9)
    assert np.array_equal(one.encode(texts), other.encode(texts))
    assert one.predict(texts, 3) == other.predict(texts, 3)


@pytest.mark.parametrize(
    "values",
    [{}, {"prototypes.enabled": False}, {"prototypes.free_vector": False}, {"prototypes.num_free_vectors": 8}],
)
def test_round_trip_bit_for_bit(tmp_path, values):
    model = make_model(**values)
    model.calibrations = {"theta": Calibration((0.5, -1.0, 2.0, 3.0, 0.0, 1e-9), {"queries": 9})}
    model.save(tmp_path / "deep" / "model")
    assert_same(model, PrimeModel.load(tmp_path / "deep" / "model", device="cpu"))


def test_a_model_without_memory_loads_and_leaves_none_behind(tmp_path):
    make_model().save(tmp_path / "model")
    model = make_model()
    model.memory = None
    model.save(tmp_path / "model")
    assert PrimeModel.load(tmp_path / "model", device="cpu").memory is None


@pytest.mark.parametrize("tensor", ["h", "label_ids", "label_starts", "text_starts"])
def test_a_memory_that_does_not_fit_is_named(tmp_path, tensor):
    make_model().save(tmp_path / "model")
    tensors = make_memory().tensors()
    save_file(tensors | {tensor: tensors[tensor][:-1].clone()}, tmp_path / "model" / "memory.safetensors")
    with pytest.raises(UserError, match=r"memory\.safetensors: damaged"):
        PrimeModel.load(tmp_path / "model", device="cpu")


@pytest.mark.parametrize("tensor", ["bias", "idf", "weight_starts", "word_starts"])
def test_a_lexical_voice_that_does_not_fit_is_named(tmp_path, tensor):
    make_model().save(tmp_path / "model")
    tensors = make_lexical().tensors()
    save_file(tensors | {tensor: tensors[tensor][:-1].clone()}, tmp_path / "model" / "lexical.safetensors")
    with pytest.raises(UserError, match=r"lexical\.safetensors: damaged"):
        PrimeModel.load(tmp_path / "model", device="cpu")


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_round_trip_of_a_transformer(tmp_path, kind):
    source = save_hugging_face(tmp_path / "source", kind)
    encoder = load_encoder(EncoderSettings(name=str(source), pooling="cls"))
    model = make_model(encoder=encoder, **{"encoder.name": str(source), "encoder.pooling": "cls"})
    model.save(tmp_path / "model")
    for file in source.iterdir():
        file.unlink()  # a model needs nothing but itself
    assert_same(model, PrimeModel.load(tmp_path / "model", device="cpu"))


def test_nothing_but_json_and_safetensors(tmp_path):
    make_model().save(tmp_path / "model")
    kinds = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert kinds == {".json", ".jsonl", ".safetensors", ".md"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"], "nothing half-written stays beside it"


def test_a_model_replaces_a_model_and_keeps_its_log(tmp_path):
    make_model(0).save(tmp_path / "model")
    (tmp_path / "model" / "metrics.jsonl").write_text("{}\n")
    (tmp_path / "model" / "training").mkdir()
    other = make_model(1)
    other.save(tmp_path / "model")
    assert_same(other, PrimeModel.load(tmp_path / "model", device="cpu"))
    assert (tmp_path / "model" / "metrics.jsonl").read_text() == "{}\n"
    assert not (tmp_path / "model" / "training").exists()


def test_it_refuses_to_replace_anything_else(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    for name in ("thesis", "file"):
        with pytest.raises(UserError, match=name):
            make_model().save(tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]
    (tmp_path / "empty").mkdir()
    make_model().save(tmp_path / "empty")


def test_when_writing_fails_the_old_model_stays(tmp_path, monkeypatch):
    old = make_model(0)
    old.save(tmp_path / "model")
    new = make_model(1)
    monkeypatch.setattr("primexmc.model.storage.json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        new.save(tmp_path / "model")
    monkeypatch.undo()
    assert_same(old, PrimeModel.load(tmp_path / "model", device="cpu"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("kind", ["static", "transformer"])
def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch, kind):
    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    if kind == "static":
        encoder, writer = static_encoder(), "primexmc.model.tensor_file.save_file"
    else:
        save_hugging_face(tmp_path / "bert", "bert")
        encoder = load_encoder(EncoderSettings(name=str(tmp_path / "bert")))
        writer = "transformers.modeling_utils.safe_save_file"
    monkeypatch.setattr(writer, full)
    with pytest.raises(UserError, match=r"cannot be written.*No space left"):
        encoder.save(tmp_path / "model" / "encoder", Settings())


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def change(file, **values):
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | values), encoding="utf-8")


def drop_line(file):
    lines = file.read_text(encoding="utf-8").split("\n")
    file.write_text("\n".join(lines[1:]), encoding="utf-8")


def swap_tensors(file):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(3)}, file)


def spoil_calibration(file):
    file.write_text(json.dumps(json.loads(file.read_text()) | {"calibrations": {"theta": {"weights": [1.0]}}}))


DAMAGE = {
    "calibration of something else": ("primexmc.json", spoil_calibration),
    "network cut": ("network.safetensors", cut),
    "network of another": ("network.safetensors", swap_tensors),
    "no network": ("network.safetensors", lambda file: file.unlink()),
    "prototypes cut": ("prototypes.safetensors", cut),
    "prototypes of another": ("prototypes.safetensors", swap_tensors),
    "labels cut": ("labels.jsonl", cut),
    "a label lost": ("labels.jsonl", drop_line),
    "labels that are none": ("labels.jsonl", lambda file: file.write_text("3\n" * NUM_LABELS)),
    "labels in binary": ("labels.jsonl", lambda file: file.write_bytes(b"\xff\xfe\x00")),
    "description cut": ("primexmc.json", cut),
    "description of something else": ("primexmc.json", lambda file: file.write_text("[1, 2]")),
    "description in binary": ("primexmc.json", lambda file: file.write_bytes(b"\xff\xfe\x00")),
    "description without settings": ("primexmc.json", lambda file: file.write_text('{"format_version": 1}')),
    "settings of another width": ("primexmc.json", lambda file: change(file, settings={"prototypes": {"width": 9}})),
    "settings of the future": ("primexmc.json", lambda file: change(file, settings={"training": {"magic": 1}})),
    "a newer format": ("primexmc.json", lambda file: change(file, format_version=2)),
    "no encoder": ("encoder/vectors.safetensors", lambda file: file.unlink()),
    "encoder cut": ("encoder/vectors.safetensors", cut),
    "tokenizer cut": ("encoder/tokenizer.json", cut),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_one_sentence(tmp_path, damage):
    make_model().save(tmp_path / "model")
    name, spoil = DAMAGE[damage]
    spoil(tmp_path / "model" / name)
    with pytest.raises(UserError) as caught:
        PrimeModel.load(tmp_path / "model", device="cpu")
    text = str(caught.value)
    assert str(tmp_path) in text and "\n" not in text
    if damage == "a newer format":
        assert "format version 2" in text and "install" in text


def test_what_is_no_model(tmp_path):
    with pytest.raises(UserError, match="no such model"):
        PrimeModel.load(tmp_path / "nothing")
    (tmp_path / "data.csv").write_text("text,labels\n")
    for place in (tmp_path, tmp_path / "data.csv"):
        with pytest.raises(UserError, match="not a model directory"):
            PrimeModel.load(place)
    (tmp_path / "training").mkdir()
    with pytest.raises(UserError, match="--resume"):
        PrimeModel.load(tmp_path)


def test_what_a_model_answers():
    model = make_model()
    texts = ["red boat", "", "old castle of a horse"]
    h = model.encode(texts)
    assert h.shape == (3, DIM) and h.dtype == np.float32
    assert np.linalg.norm(h, axis=1) == pytest.approx([1, 0, 1], abs=1e-5)
    for text, found in zip(texts, model.predict(texts, 4), strict=True):
        scores = model.prototypes_LD.double().numpy() @ model.encode([text])[0].astype(np.float64)
        best = sorted(range(NUM_LABELS), key=lambda label: (-scores[label], label))[:4]
        assert [one.id for one in found] == best or text == ""
        assert [one.score for one in found] == pytest.approx(scores[[one.id for one in found]], abs=1e-6)
        assert [(one.label, one.uid) for one in found] == [(NAMES[one.id], f"uid {one.id}") for one in found]
    assert len(model.predict(["boat"], 100)[0]) == NUM_LABELS, "never more answers than labels"
    assert model.predict([]) == [] and model.encode([]).shape == (0, DIM)


def test_how_not_to_ask():
    with pytest.raises(UserError, match="list of texts"):
        make_model().predict("red boat")
    with pytest.raises(UserError, match="at least 1"):
        make_model().predict(["red boat"], top=0)
    with pytest.raises(UserError, match=r"texts\[1\] is None; expected a text"):
        make_model().predict(["red boat", None])


def test_half_a_surrogate_pair_is_a_question_mark():
    model = make_model()
    assert np.array_equal(model.encode(["red \ud83d boat"]), model.encode(["red ? boat"]))


def test_query_prefix_and_cut_are_the_settings():
    model = make_model(**{"data.query_tokens": 3, "encoder.query_prefix": "a "})
    plain = make_model()
    assert np.array_equal(model.encode(["red boat dog ship"]), plain.encode(["a red boat"]))
