"""Indexes on disk: complete or not there, of these labels or not used, good enough or not written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from retrieval.contract.backends import needs, world

import primexmc
from primexmc.config import SearchSettings
from primexmc.errors import UserError
from primexmc.retrieval import milvus_engine
from primexmc.retrieval.description import UnusableIndex, read_index_description
from primexmc.retrieval.exact import ExactIndex
from primexmc.retrieval.kept import build_index, chosen_backend, load_index

Z, H = (torch.from_numpy(x) for x in world(600, 40))
NAMES = ["exact", pytest.param("faiss", marks=needs("faiss")), pytest.param("milvus", marks=needs("milvus_lite"))]


def files(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


@pytest.mark.parametrize("backend", NAMES)
def test_built_kept_and_taken_up(backend, tmp_path):
    place = tmp_path / "index"
    description = build_index(Z, H, SearchSettings(backend=backend), place)
    assert files(tmp_path)[0] == "index" and not list(tmp_path.glob(".*"))
    assert read_index_description(place) == description and description["num_labels"] == 600
    for _ in range(2):  # it can be opened again after it was closed
        index = load_index(place, Z)
        assert index.backend == backend
        ids, _ = index.search(H, 5)
        assert (ids == ExactIndex(Z).search(H, 5)[0]).mean() > 0.97
        index.close()


@pytest.mark.parametrize("backend", NAMES)
def test_an_index_of_other_labels_is_not_used(backend, tmp_path):
    place = tmp_path / "index"
    build_index(Z, H, SearchSettings(backend=backend), place)
    changed = Z.clone()
    changed[17, 3] += 1e-6
    for other in (changed, Z[:-1], torch.cat([Z, Z[:1]])):
        with pytest.raises(UnusableIndex, match=r"made for other labels .* builds it again"):
            load_index(place, other)
    build_index(changed, H, SearchSettings(backend=backend), place)
    load_index(place, changed).close()


@needs("faiss")
def test_too_low_a_recall_is_refused_when_built_and_when_used(tmp_path):
    place, few = tmp_path / "index", SearchSettings(backend="faiss", faiss="ivf", recall=0.3)
    build_index(Z, H, SearchSettings(backend="faiss"), place)
    before = {name: (place / name).read_bytes() for name in files(place)}
    with pytest.raises(UserError, match=r"finds \d+\.\d % of the best 100 .* search.recall.*search.min_recall=0"):
        build_index(Z, H, few, place)
    assert {name: (place / name).read_bytes() for name in files(place)} == before and files(tmp_path)[0] == "index"
    told = SearchSettings(backend="faiss", faiss="ivf", recall=0.3, min_recall=0.1)
    description = build_index(Z, H, told, place)
    assert 0.1 <= description["facts"]["recall"]["recall"] < 0.95
    load_index(place, Z)
    description["facts"]["least"] = 0.95
    (place / "index.json").write_text(json.dumps(description))
    with pytest.raises(UnusableIndex, match="at least 95 % are asked for"):
        load_index(place, Z)


@needs("faiss")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.json", None),
        ("index.json", "{"),
        ("index.json", "[]"),
        ("index.json", '{"format_version": 99}'),
        ("faiss.index", None),
        ("faiss.index", "rubbish"),
        ("keys.npy", None),
        ("keys.npy", "rubbish"),
    ],
)
def test_damage_is_told_in_a_sentence(name, content, tmp_path):
    build_index(Z, H, SearchSettings(backend="faiss"), tmp_path / "index")
    file = tmp_path / "index" / name
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(UnusableIndex, match="index") as caught:
        load_index(tmp_path / "index", Z)
    assert "\n" not in str(caught.value)


def test_exact_below_200_000_labels():
    assert [chosen_backend(SearchSettings(), size) for size in (1, 199_999, 200_000)] == ["exact", "exact", "faiss"]
    assert chosen_backend(SearchSettings(backend="milvus"), 5) == "milvus"


@pytest.mark.parametrize(("backend", "package"), [("faiss", "faiss"), ("milvus", "pymilvus")])
def test_a_missing_package_is_named(backend, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r'pip install "primexmc\['):
        build_index(Z, H, SearchSettings(backend=backend), tmp_path / "index")
    assert files(tmp_path) == []


@needs("milvus_lite")
def test_a_server_that_is_away_and_a_file_that_is_in_use(tmp_path):
    with pytest.raises(UserError, match=r"http://127.0.0.1:9: no Milvus answers there"):
        build_index(Z, H, SearchSettings(backend="milvus", milvus_uri="http://127.0.0.1:9"), tmp_path / "a")
    build_index(Z, H, SearchSettings(backend="milvus"), tmp_path / "b")
    index = load_index(tmp_path / "b", Z)
    code = (
        f"from primexmc.retrieval.milvus_engine import MilvusEngine as M; M('', 'x')._connect(P({str(tmp_path)!r})/'b')"
    )
    done = run(f"from pathlib import Path as P; {code}")
    assert "another process may have it open" in done.stderr
    index.close()


@needs("milvus_lite")
def test_labels_on_a_server_are_replaced_and_not_heaped_up(tmp_path, milvus_server):
    uri, place = milvus_server(), tmp_path / "index"
    settings = SearchSettings(backend="milvus", milvus_uri=uri)
    client = milvus_engine.import_milvus().MilvusClient(uri)
    before = set(client.list_collections())
    build_index(Z, H, settings, place)
    first = set(client.list_collections()) - before
    build_index(Z[:500], H, settings, place)
    second = set(client.list_collections()) - before
    assert len(first) == len(second) == 1 and first != second
    build_index(Z[:500], H, SearchSettings(), place)
    assert set(client.list_collections()) == before
    client.close()


def run(code):
    environment = {"PYTHONPATH": str(Path(primexmc.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


@needs("faiss")
@pytest.mark.parametrize("moment", ["build", "efforts", "save"])
def test_kill_9_leaves_what_was_there(moment, tmp_path):
    """The process is killed within the build; the old index answers, and the next build clears away what is left."""
    place = tmp_path / "index"
    build_index(Z, H, SearchSettings(backend="faiss"), place)
    before = files(tmp_path)
    np.save(tmp_path / "z.npy", Z.numpy())
    killer = f"""
import os, signal, numpy as np, torch
from pathlib import Path
from primexmc.config import SearchSettings
from primexmc.retrieval.faiss_engine import FaissEngine
from primexmc.retrieval.kept import build_index
place = Path({str(tmp_path)!r})
def killed(*_):
    next(place.glob(".index.new-*")).joinpath("half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
FaissEngine.{moment} = killed
z = torch.from_numpy(np.load(place / "z.npy"))
build_index(z, z[:9], SearchSettings(backend="faiss"), place / "index")
"""
    assert run(killer).returncode == -signal.SIGKILL
    (tmp_path / "z.npy").unlink()
    left = [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(left) == 1
    assert files(place) == [name.removeprefix("index/") for name in before if name != "index"]
    load_index(place, Z)
    build_index(Z, H, SearchSettings(backend="faiss"), place)
    assert files(tmp_path) == before
