"""docs/adding-a-method.md, block by block: its files are written, its commands are run, and what it says holds."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.shop import CATEGORIES, write_shop
from model.tiny import save_hugging_face

import primexmc
from primexmc import UserError, own_code
from primexmc.cli import main

ROOT = Path(primexmc.__file__).parents[2]
DOC = ROOT / "docs" / "adding-a-method.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
QUICK = "--preset static-cpu --quiet --set training.epochs=1 --set training.threads=1 --set training.device=cpu"


def blocks(kind):
    return [content for language, content in BLOCK.findall(DOC.read_text(encoding="utf-8")) if language == kind]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with the page's files and a shop, where nothing is trusted yet."""
    for content in blocks("python") + blocks("toml"):
        name = content.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "shop").mkdir()
    write_shop(tmp_path / "shop" / "train.csv", 90)
    write_shop(tmp_path / "shop" / "test.csv", 40, seed=1)
    save_hugging_face(tmp_path / "encoder", "bert", max_position_embeddings=80)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(own_code, "_allowed", set())
    for name in ("my_losses", "my_samplers", "my_poolings"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


COMMANDS = [line for content in blocks("sh") for line in content.splitlines()]


@pytest.mark.parametrize("lines", blocks("sh"), ids=lambda content: content.split("=")[-1].strip()[:40])
def test_the_commands_run(place, lines, monkeypatch, capsys):
    for line in lines.splitlines():
        words = shlex.split(line.replace("sentence-transformers/all-MiniLM-L6-v2", str(place / "encoder")))
        while "=" in words[0]:
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        verb = words[1]
        assert words.pop(0) == "primexmc"
        assert main(words + (shlex.split(QUICK) if verb in ("train", "compare") else [])) == 0, capsys.readouterr().err


def test_there_is_something_to_run():
    assert len(COMMANDS) == 6 and len(blocks("python")) == 3 and len(blocks("toml")) == 1


SMALL = ("training.batch_size=4", "sampling.positives_per_query=1", "training.epochs=4")  # so few that chance is seen


def train_with(place, *settings):
    words = ["train", "shop", "--out", "model", "--overwrite", *shlex.split(QUICK)]
    assert main(words + [word for setting in settings for word in ("--set", setting)]) == 0
    return [json.loads(line) for line in (place / "model" / "metrics.jsonl").read_text().splitlines()]


def test_each_part_makes_a_difference(place):
    """Nothing of one's own is silently ignored."""
    losses = {
        setting: tuple(row["loss"] for row in train_with(place, setting, *SMALL) if "loss" in row)
        for setting in (
            "loss.name=softmax",
            "loss.name=my_losses:all_triplets",
            "sampling.positives=my_samplers:by_rarity",
            "sampling.negatives=my_samplers:Frequent",
            "sampling.batches=my_samplers:in_order",
            "prototypes.combine=my_poolings:Gate",
        )
    }
    assert len(set(losses.values())) == len(losses)


def test_a_method_file_over_a_method_of_the_package(place):
    assert main(["compare", "shop", "--methods", "careful.toml,ngame", "--out", "results", *shlex.split(QUICK)]) == 0
    careful, ngame = json.loads((place / "results" / "field.json").read_text(encoding="utf-8"))
    assert (careful["method"], ngame["method"]) == ("careful", "ngame")
    differing = {key for key in ngame["settings"] if ngame["settings"][key] != careful["settings"][key]}
    assert differing == {"sampling.positives_per_query", "loss.num_negatives", "training.learning_rate"}
    assert careful["settings"]["training.learning_rate"] == ngame["settings"]["training.learning_rate"] / 2


def test_a_model_imports_nothing_unasked(place):
    """The loss is no part of a prediction; a pooling is, and is asked for."""
    train_with(place, "loss.name=my_losses:all_triplets")
    code = "import sys, primexmc; primexmc.PrimeModel.load('model').predict(['a']); print('my_losses' in sys.modules)"
    assert python(code).stdout.strip() == "False"
    train_with(place, "prototypes.combine=my_poolings:Gate")
    marker = place / "imported"
    source = (place / "my_poolings.py").read_text(encoding="utf-8")
    (place / "my_poolings.py").write_text(f"open({str(marker)!r}, 'w')\n{source}", encoding="utf-8")
    refused = python("import primexmc; primexmc.PrimeModel.load('model')")
    assert refused.returncode and "PRIMEXMC_OWN_CODE=my_poolings:Gate" in refused.stderr and not marker.exists()
    allowed = "from primexmc import own_code, PrimeModel; own_code.allow('my_poolings:Gate'); "
    assert python(f"{allowed}print(len(PrimeModel.load('model').labels))").stdout.strip() == str(len(CATEGORIES))
    assert marker.exists()


def python(code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("loss.name=my_lossses:all_triplets", "no module my_lossses"),
        ("loss.name=my_losses:no_triplets", "my_losses has no no_triplets"),
        ("loss.name=sofmax", 'not "sofmax". Did you mean "softmax"'),
        ("training.precision=my_losses:x", "training.precision is one of auto, fp32, bf16"),
        ("sampling.batches=wrong:one_too_many", "made 1 batches"),
    ],
)
def test_one_sentence_for_what_is_wrong(place, setting, sentence, capsys):
    (place / "wrong.py").write_text("def one_too_many(n, size, rng, cluster_of_N):\n    return [range(n)]\n")
    words = ["train", "shop", "--out", "model", *shlex.split(QUICK), "--set", "training.batch_size=32"]
    assert main([*words, "--set", setting]) == 2
    assert sentence in capsys.readouterr().err
    assert not (place / "model").exists()


def test_an_import_error_inside_is_the_users_own(place):
    (place / "broken.py").write_text("import there_is_no_such_thing\n")
    own_code.allow("broken:x")
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_thing"):
        own_code.own("broken:x", "loss.name")


def test_nothing_is_named_by_accident(place):
    assert own_code.is_own("a.b:c") and not any(map(own_code.is_own, ("a:b:c", "a b:c", "/x:y", "softmax", 3, "a:")))
    with pytest.raises(UserError, match="not imported unasked"):
        own_code.own("os:system", "encoder.pooling")
