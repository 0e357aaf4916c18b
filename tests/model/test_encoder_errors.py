"""What cannot be an encoder is said in one sentence, at once."""

from __future__ import annotations

import json
import time

import pytest
from model.tiny import save_hugging_face

from primexmc.config import EncoderSettings
from primexmc.errors import UserError
from primexmc.model import hugging_face
from primexmc.model.encoder import load_encoder


def sentence(name):
    started = time.perf_counter()
    with pytest.raises(UserError) as caught:
        load_encoder(EncoderSettings(name=str(name)))
    text = str(caught.value)
    assert "\n" not in text and str(name) in text and "expected" in text
    return text, time.perf_counter() - started


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "../x", "~/no-such-directory-here", "a/b/c", " "])
def test_what_looks_like_a_path_is_a_path(name, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "no such directory" in sentence(name)[0]


def test_a_file(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"\0\1")
    assert "a file" in sentence(tmp_path / "model.bin")[0]


@pytest.mark.parametrize(
    "content", [None, "{nonsense", "{}", '{"model_type": "no such type"}', '{"model_type": "bert"}']
)
def test_a_directory_that_is_no_encoder(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="utf-8")
    assert "cannot be used" in sentence(tmp_path)[0]


DAMAGE = {
    "no tokenizer": lambda place: [path.unlink() for path in place.glob("tokenizer*")],
    "a broken tokenizer": lambda place: (place / "tokenizer.json").write_text("{"),
    "no weights": lambda place: (place / "model.safetensors").unlink(),
    "half the weights": lambda place: cut(place / "model.safetensors"),
    "another width": lambda place: change(place / "config.json", hidden_size=32),
    "one layer more": lambda place: change(place / "config.json", num_hidden_layers=3),
    "a smaller vocabulary": lambda place: shrink(place),
}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def shrink(place):
    """The tokenizer of another model: ids that the weights do not have."""
    file = place / "tokenizer.json"
    recipe = json.loads(file.read_text(encoding="utf-8"))
    recipe["model"]["vocab"] |= {"more": 5000}
    file.write_text(json.dumps(recipe), encoding="utf-8")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_encoder(tmp_path, damage):
    """The libraries make a random layer, or an empty tokenizer, and go on."""
    save_hugging_face(tmp_path, "bert")
    load_encoder(EncoderSettings(name=str(tmp_path)))
    DAMAGE[damage](tmp_path)
    assert "cannot be used" in sentence(tmp_path)[0]


def test_reading_a_directory_is_quiet(tmp_path, capfd):
    save_hugging_face(tmp_path, "bert")
    capfd.readouterr()
    load_encoder(EncoderSettings(name=str(tmp_path)))
    out = capfd.readouterr()
    assert out.out == out.err == ""


class Hub:
    """Stands in for the hub's answers."""

    answer: object = None
    asked = 0

    def model_info(self, name, timeout):
        Hub.asked += 1
        if isinstance(Hub.answer, Exception):
            raise Hub.answer
        return Hub.answer


@pytest.fixture
def hub(monkeypatch, tmp_path):
    import huggingface_hub

    Hub.answer, Hub.asked = ConnectionError("no route\nto host"), 0
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    return Hub


def test_a_name_while_the_hub_cannot_be_reached(hub):
    text, seconds = sentence("somebody/some-model")
    assert "cannot be reached (no route)" in text and hub.asked == 1 and seconds < 5
    assert 'Did you mean "static"?' in sentence("stattic")[0]


def test_a_name_that_the_hub_does_not_know(hub):
    from huggingface_hub.errors import RepositoryNotFoundError

    hub.answer = RepositoryNotFoundError.__new__(RepositoryNotFoundError)
    assert "nor a model on the Hugging Face hub" in sentence("somebody/some-model")[0]


@pytest.mark.parametrize("reachable", [True, False])
def test_a_name_is_read_from_the_cache_without_the_hub(hub, monkeypatch, reachable):
    """Offline the libraries would ask again and again for each file."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "/cache/config.json")
    if reachable:
        hub.answer = object()
    seen = {}
    monkeypatch.setattr(hugging_face, "_read", lambda *args, **kwargs: seen.update(kwargs))
    hugging_face.read_hugging_face("somebody/some-model", -1.0)
    assert seen == {"local_files_only": not reachable}


def test_an_encoder_with_a_decoder(tmp_path):
    from model.tiny import tokenizer
    from transformers import PreTrainedTokenizerFast, T5Config, T5Model

    T5Model(T5Config(vocab_size=30, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)).save_pretrained(tmp_path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), pad_token="[PAD]").save_pretrained(tmp_path)
    assert "decoder" in sentence(tmp_path)[0]
