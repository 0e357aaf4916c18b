"""The Dockerfile, as far as it can be tried without an engine: what it copies, what it runs, and as whom."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from primexmc.cli.parser import parse

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def steps():
    """(instruction, rest) of each step, continued lines put together."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def rest_of(steps, instruction):
    return [rest for name, rest in steps if name == instruction]


def test_what_is_copied_is_there_and_not_ignored(steps):
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = [words[:-1] for rest in rest_of(steps, "COPY") if "--from" not in rest for words in [shlex.split(rest)]]
    sources = [source for words in copied for source in words]
    assert {"pyproject.toml", "constraints.txt", "src", "README.md", "LICENSE", "NOTICE"} == set(sources)
    for source in sources:
        assert (ROOT / source).exists() and f"!{source}" in ignored, source
    assert "*" in ignored, "nothing else is sent"


def test_the_package_needs_nothing_that_is_not_copied(steps):
    """What the build reads, by pyproject.toml."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in [*re.findall(r'^readme = "(.+)"', project, re.MULTILINE), "LICENSE", "NOTICE"]:
        assert any(name in rest for rest in rest_of(steps, "COPY"))
    assert 'packages = ["src/primexmc"]' in project and re.search(r"^serve = ", project, re.MULTILINE)
    install = next(rest for rest in rest_of(steps, "RUN") if "pip install" in rest)
    assert '".[serve]"' in install and "--constraint constraints.txt" in install


def test_the_command_is_one_of_ours(steps):
    (entry,), (command,) = (map(json.loads, rest_of(steps, name)) for name in ("ENTRYPOINT", "CMD"))
    assert entry[0] == "primexmc"
    arguments = parse(entry[1:] + command)
    assert (arguments.verb, str(arguments.model), arguments.host, arguments.port) == (
        "serve",
        "/model",
        "0.0.0.0",
        8000,
    )
    assert rest_of(steps, "EXPOSE") == ["8000"]


def test_it_does_not_run_as_root(steps):
    (user,) = rest_of(steps, "USER")
    assert user.isdigit() and int(user) > 0
    names = [name for name, _ in steps]
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_the_health_check_asks_for_something_that_is_there(steps):
    (check,) = rest_of(steps, "HEALTHCHECK")
    python, flag, code = json.loads(check.partition("CMD ")[2])
    assert (python, flag) == ("python", "-c") and ast.parse(code)
    state = (ROOT / "src/primexmc/serving/state.py").read_text(encoding="utf-8")
    assert "127.0.0.1:8000/ready" in code and '@router.get("/ready"' in state


def test_the_example_commands_name_the_images_that_are_built():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    built = set(re.findall(r"docker build .*-t (\S+) \.", text))
    run = set(re.findall(r"docker run .* (\S+)$", text, re.MULTILINE))
    assert built == run == {"primexmc", "primexmc:gpu"}
