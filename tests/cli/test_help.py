"""Help is quick and heavy packages stay out of it; a word that is not known gets one sentence."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import primexmc
from primexmc.cli import main
from primexmc.cli.parser import VERBS
from primexmc.config import all_settings
from primexmc.presets import preset_names

SOURCE = Path(primexmc.__file__).parents[1]
SCRIPT = """
import sys
from primexmc.cli import main
code = main(sys.argv[1:])
loaded = {"torch", "transformers", "scipy", "numpy"} & set(sys.modules)
print("loaded:", sorted(loaded), "code:", code)
"""


def run_alone(*arguments):
    """The output of a command in a new process, and the seconds it took."""
    started = time.perf_counter()
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)})
    return done.stdout, time.perf_counter() - started


@pytest.mark.parametrize("arguments", [[], *([verb] for verb in VERBS)], ids=lambda words: " ".join(words) or "all")
def test_help_is_quick_and_without_torch(arguments):
    printed, seconds = run_alone(*arguments, "--help")
    for _ in range(5):  # a busy machine is no fault of ours
        if seconds >= 0.5:
            seconds = run_alone(*arguments, "--help")[1]
    assert printed.endswith("loaded: [] code: 0\n") and "primexmc" in printed
    assert seconds < 0.5


@pytest.mark.parametrize("arguments", [["info"], ["info", "--settings"], ["info", "--preset", "minilm"], ["--version"]])
def test_other_small_questions_do_without_torch(arguments):
    assert "loaded: [] code: 0" in run_alone(*arguments)[0]


def test_each_verb_has_one_sentence_and_examples(capsys):
    assert main(["--help"]) == 0
    overview = " ".join(capsys.readouterr().out.split())
    for verb, module in VERBS.items():
        assert f"{verb} {module.SENTENCE}" in overview
        assert main([verb, "--help"]) == 0
        printed = capsys.readouterr().out
        assert "example" in printed and f"primexmc {verb}" in printed
        assert all(len(line) <= 120 for line in printed.splitlines())


def test_no_verb_at_all_shows_the_help(capsys):
    assert main([]) == 2
    assert "first steps" in capsys.readouterr().out


def test_every_setting_and_preset_is_listed(capsys):
    assert main(["info", "--settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for key in all_settings():
        assert any(line.split()[:1] == [key] for line in lines)
    assert main(["info"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in preset_names()) and primexmc.__version__ in overview


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["trian"], 'there is no verb "trian". Did you mean "train"?'),
        (["xyzzy"], 'there is no verb "xyzzy". There are: train, evaluate'),
        (["train", "x.csv"], "the following arguments are required: --out"),
        (["train", "x.csv", "--out", "y", "--presett", "z"], 'no option "--presett". Did you mean "--preset"?'),
        (["predict", "model", "file", "another"], '"another" is one word too many'),
        (["predict", "model", "--top", "many"], "argument --top: invalid int value: 'many'"),
        (["info", "--preset", "minilm", "--settings"], "one question at a time"),
        (["serve", "model", "--port", "99999"], "--port is between 0 and 65535"),
        (["--colour"], 'primexmc has no option "--colour".'),
    ],
)
def test_one_sentence_for_what_cannot_be_meant(arguments, sentence, capsys):
    assert main(arguments) == 2
    screen = capsys.readouterr()
    assert screen.out == "" and screen.err.count("\n") == 1
    assert screen.err.startswith("primexmc: error: ") and sentence in screen.err


def test_debug_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("PRIMEXMC_DEBUG", "1")
    assert main(["info", "nowhere"]) == 2
    screen = capsys.readouterr().err
    assert "Traceback" in screen and screen.endswith("primexmc: error: nowhere: no such file or directory.\n")
