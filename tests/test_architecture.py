"""Imports flow one way, and what must run anywhere needs little; judged from the source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import primexmc

PACKAGE = Path(primexmc.__file__).parent

# A room may import from the rooms below it and from itself. Rooms that share a line do not know each other.
FLOORS = [
    {"errors"},
    {"own_code"},
    {"config", "atomic"},
    {"data", "presets"},
    {"losses", "sampling", "retrieval"},
    {"fusion"},
    {"model"},  # a model carries the corpus' labels and searches its prototypes
    {"evaluation"},
    {"training"},
    {"bulk", "compare", "demo", "export", "serving", "sklearn"},
    {"cli"},
]
NO_TRAINING = {"bulk", "export", "serving"}
HEAVY = {"pyarrow", "cyclopts", "pydantic", "zstandard"}
LAZY = HEAVY | {"faiss", "pymilvus", "milvus_lite"}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor_of(room: str) -> int:
    for floor, rooms in enumerate(FLOORS):
        if room in rooms:
            return floor
    raise AssertionError(f"src/primexmc/{room} is on no floor: give it one in FLOORS")


def imported_modules(path: Path, *, only_at_import: bool = False) -> Iterator[tuple[str, int]]:
    """Every module named in an import statement, absolute, with its line; `TYPE_CHECKING` blocks do not run."""
    package = ("primexmc", *path.relative_to(PACKAGE).parent.parts)
    for node in _walk(ast.parse(path.read_text(encoding="utf-8")), only_at_import):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, node.module) if node.module else base)
            if module == "primexmc":  # `from .. import data` names rooms
                yield from ((f"primexmc.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno


def _walk(node: ast.AST, only_at_import: bool) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if only_at_import and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING" and only_at_import:
            continue
        yield from _walk(child, only_at_import)


def is_allowed(importer: str, imported: str) -> bool:
    if importer == imported:
        return True
    if importer in NO_TRAINING and imported == "training":
        return False
    return floor_of(imported) < floor_of(importer)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_flow_one_way(path: Path) -> None:
    importer = room_of(path)
    if importer in {"__init__", "__main__"}:
        return  # the public names reach into every room; they are loaded lazily
    for module, line in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "primexmc" and len(parts) > 1 and parts[1] not in {*primexmc.__all__, "__version__"}:
            assert is_allowed(importer, parts[1]), f"{path}:{line}: {importer} must not import {module}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_optional_packages_are_never_needed_at_import(path: Path) -> None:
    if room_of(path) == "serving":
        return  # the room of the extra [serve]: only the verb imports it, and says what is missing
    roots = {module.split(".")[0]: line for module, line in imported_modules(path, only_at_import=True)}
    assert not LAZY & roots.keys(), f"{path}: {LAZY & roots.keys()} must be imported where they are used"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_losses_model_and_training_do_without_optional_packages(path: Path) -> None:
    if room_of(path) in {"losses", "model", "training", "sampling", "retrieval"}:
        roots = {module.split(".")[0] for module, _ in imported_modules(path)}
        assert not HEAVY & roots


def test_every_room_has_a_floor() -> None:
    for path in sources():
        if room_of(path) not in {"__init__", "__main__"}:
            floor_of(room_of(path))


def test_no_room_for_odds_and_ends() -> None:
    names = {part.removesuffix(".py") for path in sources() for part in path.relative_to(PACKAGE).parts}
    assert not names & {"utils", "util", "helpers", "helper", "managers", "manager", "misc", "common"}


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("training", "model", True),
        ("model", "training", False),
        ("model", "retrieval", True),
        ("retrieval", "model", False),
        ("evaluation", "model", True),
        ("model", "evaluation", False),
        ("losses", "sampling", False),
        ("data", "presets", False),
        ("sampling", "retrieval", False),
        ("demo", "training", True),
        ("serving", "training", False),
        ("data", "data", True),
        ("config", "errors", True),
        ("errors", "config", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_relative_and_lazy_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "model"
    room.mkdir()
    path = room / "x.py"
    path.write_text("from ..training import loop\nfrom .. import cli\n\ndef f():\n    import primexmc.serving.app\n")
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    assert [module for module, _ in imported_modules(path)] == [
        "primexmc.training",
        "primexmc.cli",
        "primexmc.serving.app",
    ]
    assert [module for module, _ in imported_modules(path, only_at_import=True)] == [
        "primexmc.training",
        "primexmc.cli",
    ]
