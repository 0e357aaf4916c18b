"""Every command in README.md and docs/. Those that can run here do, in a directory like the reader's; the others (a
GPU, a network, other people's data or programs) must be what the real parser takes. What is neither fails."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import itertools
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from e2e.shop import CATEGORIES, write_shop

import primexmc
from primexmc import Corpus, PrimeModel
from primexmc.cli import main
from primexmc.cli.parser import VERBS, build_parser, parse
from primexmc.compare.experiment import load_experiment
from primexmc.compare.registry import find_method
from primexmc.config import Settings, parse_overrides
from primexmc.presets import load_preset

ROOT = Path(primexmc.__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = {"primexmc", "python", "make", "pip", "curl", "docker", "echo"}
VARIABLE = re.compile(r"[A-Z_]+=\S+")
QUICK = "--set training.epochs=1 --set training.threads=1 --set training.device=cpu"
# Why a command is not run here. Words in capitals stand for what a reader puts in their place.
NOT_HERE = re.compile(
    r"\b[A-Z]{4,}\b|--preset (minilm|best)|http://|pecos|omikuji|tate|gutenberg|primexmc (serve|demo)\b"
)
ELSEWHERE = {"adding-a-method.md", "export.md"}  # run by tests of their own
FORMS = {"FORM": "parquet"}  # a word in capitals that stands for one of a few


class Command(NamedTuple):
    page: str
    text: str
    inline: bool  # within a sentence: not always with all its arguments

    @property
    def words(self):
        """The last part of a pipe, without variables."""
        words = list(itertools.dropwhile(VARIABLE.fullmatch, shlex.split(self.text.rpartition(" | ")[2])))
        return [word.strip("[]") for word in words] if words[0] == "primexmc" else words


def lines_of(page):
    """Of code blocks but Python, TOML and output: (language, line); and what a sentence has between back-ticks."""
    fence, inline = None, re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`]+)`")
    for line in re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8")).splitlines():
        if line.lstrip().startswith("```"):
            fence = None if fence is not None else line.strip()[3:]
        elif fence is not None or line.startswith("    "):
            if fence not in ("python", "toml", "text"):
                yield fence, line.strip()
        else:
            yield from (("inline", command) for command in inline.findall(line))


def command_in(page, kind, line):
    """Without what stands behind it: a comment, or an explanation after a gap. None where it is no command."""
    text = re.split(r"\s+# |\s{3,}", line)[0].strip()
    words = [word for word in text.split() if not VARIABLE.fullmatch(word)]
    return Command(page.name, text, kind == "inline") if len(words) > 1 and words[0] in PROGRAMS else None


ALL = [
    command
    for page in PAGES
    for kind, line in lines_of(page)
    if (command := command_in(page, kind, line)) is not None and page.name != "results.md"  # has a test of its own
]
OURS = {f"{one.page}: {one.text}": one for one in ALL if one.words[0] == "primexmc"}
RUN = {
    where: one for where, one in OURS.items() if not (one.inline or NOT_HERE.search(one.text) or one.page in ELSEWHERE)
}


def test_a_block_of_commands_holds_nothing_else():
    for page in PAGES:
        for kind, line in lines_of(page):
            assert kind != "sh" or command_in(page, kind, line), f"{page.name}: this test does not know {line}"
    assert len(ALL) > 60 and len(OURS) > 45


@pytest.mark.parametrize("command", OURS.values(), ids=OURS)
def test_the_parser_takes_it(command):
    """And its settings, presets, methods and recipes are there."""
    verb, *words = command.words[1:]
    assert verb in VERBS
    if command.inline:
        known = build_parser()[1][verb].format_help()
        assert all(word in known for word in words if word.startswith("--"))
        return
    arguments = parse([verb, *(FORMS.get(word, word) for word in words)])
    values = parse_overrides(getattr(arguments, "set", []))
    Settings().with_values({key: value for key, value in values.items() if ":" not in str(value)}, command.page)
    if getattr(arguments, "preset", None):
        load_preset(arguments.preset)
    for recipe in (getattr(arguments, "recipe", None) or "").split(","):
        if recipe and not recipe.endswith(".toml"):
            load_experiment(recipe)
    for method in (getattr(arguments, "methods", None) or "").split(","):
        if method and not method.endswith(".toml"):
            find_method(method)


def test_other_programs_are_asked_for_what_there_is(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # scripts find what lies beside them
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in ALL:
        program, *words = command.words
        if program == "make":
            assert words[0] in targets, command
        elif program == "pip":
            assert words[1] == "." or re.fullmatch(r"primexmc\[(.+)\]", words[1])[1] in extras, command
        elif program == "python":
            check_script(ROOT / words[0], words[1:], monkeypatch)


def check_script(script, words, monkeypatch):
    """It can be read, and its own parser takes the words."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, script.stem, module)
    spec.loader.exec_module(module)
    if hasattr(module, "parse"):
        module.parse(words)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """What the pages take for granted: a shop's files, and a model."""
    place = tmp_path_factory.mktemp("desk")
    (place / "my-data").mkdir()
    shops = ["products", "test", "to-label", "my-data/train", "my-data/test", "all-of-today", "new-ones"]
    for seed, name in enumerate(shops):
        write_shop(place / f"{name}.csv", 150, seed=seed)
    first, second, *_ = sorted(CATEGORIES)
    files = {
        "texts.txt": "red kettle\n\nusb adapter\n",
        "new.csv": "uid,name,text\nK-17,Kayaks,Folding kayaks for two\nS-1,Sundials,A sundial for the garden\n",
        "names.csv": f'uid,name,text\n"{first}",Bath,"Bath and body, soap"\n',
        "examples.csv": "text,labels\ncarbon paddle,K-17\nbronze sundial,S-1\n",
        "more-examples.csv": f'text,labels\ncarbon paddle,"{first}"\nbronze sundial,"{second}"\n',
        "gone.txt": f"{second}\n",
    }
    files |= {"new-products.csv": files["new.csv"], "sold-out.txt": files["gone.txt"]}
    for name, content in files.items():
        (place / name).write_text(content, encoding="utf-8")
    quick = [*shlex.split(QUICK), "--preset", "static-cpu", "--quiet"]
    assert main(["train", str(place / "products.csv"), "--out", str(place / "my-model"), *quick]) == 0
    return place


@pytest.fixture
def here(desk, tmp_path, monkeypatch):
    """A copy that a command may change."""
    shutil.copytree(desk, tmp_path / "desk")
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


def test_every_verb_that_can_runs():
    verbs = [command.words[1] for command in RUN.values()]
    assert {"train", "evaluate", "compare", "predict", "labels", "export", "index", "info"} >= set(verbs)
    assert len(set(verbs)) >= 7 and len(verbs) > 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", RUN.values(), ids=RUN)
def test_it_runs(command, here, monkeypatch, capsys):
    words = command.words[1:]
    for package in {"faiss": "faiss", "milvus": "milvus_lite", "parquet": "pyarrow"}.items():
        if package[0] in command.text:
            pytest.importorskip(package[1])
    if "title" in command.text:
        for name in ("products.csv", "test.csv"):
            (here / name).write_text((here / name).read_text().replace("sku,text", "sku,title"))
    if words[0] in ("train", "compare"):
        words += shlex.split(QUICK)
    if said := re.match(r'echo "(.+)" \|', command.text):
        stdin = io.TextIOWrapper(io.BytesIO(f"{said[1]}\n".encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stdin)
    assert main(words) == 0, capsys.readouterr().err
    for option, place in itertools.pairwise(words):
        assert option != "--out" or (here / place).exists()


def test_what_is_asked_over_http_is_answered(desk, tmp_path):
    pytest.importorskip("fastapi", reason="needs the extra [serve]")
    from serving.served import serving

    from primexmc.serving.current import Current

    asked = [command for command in ALL if command.words[0] == "curl"]
    assert len(asked) >= 7
    with serving(Current(shutil.copytree(desk / "my-model", tmp_path / "my-model"), "cpu")) as served:
        for command in asked:
            words = command.words
            (path,) = [word.removeprefix("localhost:8000") for word in words if word.startswith("localhost:8000")]
            body = words[words.index("-d") + 1] if "-d" in words else None
            named = words[words.index("-H") + 1].partition(": ")[2] if "-H" in words else None
            headers = {"Content-Type": named or "application/x-www-form-urlencoded"}  # as curl says
            status, answer, _ = served.ask("POST" if body else "GET", path, body, headers)
            assert status == 200, (command, answer)


PYTHON = {
    f"{page.name} {number}": block
    for page in PAGES
    if page.name not in ELSEWHERE
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
}
SHOWN = (ROOT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("\n```")[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", PYTHON.values(), ids=PYTHON)
def test_its_python_runs(block, here, monkeypatch, capsys):
    """With one epoch, and a small part of the embedded example."""
    if "sklearn" in block:
        pytest.importorskip("sklearn")
    load, train = Corpus.load, primexmc.train
    quick = parse_overrides(shlex.split(QUICK)[1::2])

    def train_quickly(corpus, preset=None, settings=None, **options):
        return train(corpus, preset, {**(settings or {}), **quick}, **options)

    monkeypatch.setattr(Corpus, "load", lambda *path: a_part(load(*path)))
    monkeypatch.setattr(primexmc, "train", train_quickly)
    monkeypatch.setattr("primexmc.training.train.train", train_quickly)
    texts, labels = map(list, zip(*write_shop(here / "some.csv", 150), strict=True))
    names = {"texts": texts, "labels": labels, "label_texts": [*CATEGORIES, "retired label"], "PrimeModel": PrimeModel}
    exec(block.replace('split="test"', 'split="train"'), names)
    if "example_path" in block:
        for lines in (capsys.readouterr().out.strip("\n").splitlines(), SHOWN.splitlines()):
            assert re.fullmatch(r"\{'P@1': [\d.]+, 'P@5': [\d.]+, 'R@100': [\d.]+\}", lines[0])
            assert len(lines) == 6 and all(re.fullmatch(r" *\d+%  .+", line) for line in lines[1:])


def a_part(corpus):
    train, test = corpus.train.take(np.arange(300)), corpus.test.take(np.arange(50))
    return dataclasses.replace(corpus, train=train, test=test)
