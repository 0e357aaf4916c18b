"""`import primexmc` is cheap, and its public names are the right objects whatever was imported before."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import primexmc

FUNCTIONS = ["train", "evaluate", "metrics", "dynamic_margin_loss"]
SUBMODULES = ["primexmc.training.train", "primexmc.evaluation.evaluate", "primexmc.evaluation.metrics"]


def run(code: str) -> str:
    """What the code prints in a Python of its own, whether or not the package is installed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(primexmc.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def test_import_needs_no_torch_and_no_numpy() -> None:
    code = "import sys, primexmc; print(sorted({'torch', 'numpy', 'scipy', 'transformers', 'rich'} & set(sys.modules)))"
    assert run(code) == "[]"


def test_settings_and_errors_need_no_torch_and_no_numpy() -> None:
    code = "import sys; from primexmc import Settings, UserError; print({'torch', 'numpy'} & set(sys.modules))"
    assert run(code) == "set()"


@pytest.mark.parametrize("name", primexmc.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(primexmc, name)
    assert callable(value)
    assert value.__doc__
    assert name in dir(primexmc)


@pytest.mark.parametrize("before", ["", *SUBMODULES])
def test_functions_are_functions_whatever_was_imported_before(before: str) -> None:
    first = f"import {before}; " if before else ""
    names = ", ".join(FUNCTIONS)
    code = f"{first}from primexmc import {names}; print([type(f).__name__ for f in ({names})])"
    assert run(code) == str(["function"] * len(FUNCTIONS))


@pytest.mark.parametrize("module", ["losses.dynamic_margin", "model.model", "training.train"])
def test_optional_packages_may_be_missing(module: str) -> None:
    blocked = "sys.modules.update(dict.fromkeys(['pyarrow', 'zstandard', 'pydantic', 'cyclopts']))"
    assert run(f"import sys; {blocked}; import primexmc.{module}; print('fine')") == "fine"


def test_submodules_stay_reachable_after_the_public_names_were_used() -> None:
    code = "from primexmc import train; import primexmc.training.train as module; print(module.train is train)"
    assert run(code) == "True"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        primexmc.nonsense  # noqa: B018


def test_version_is_the_installed_one() -> None:
    try:
        installed = importlib.metadata.version("primexmc")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("run from the source tree, nothing is installed")
    assert primexmc.__version__ == installed
