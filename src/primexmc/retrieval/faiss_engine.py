"""faiss as an engine: a graph (HNSW) or lists around cluster centres (IVF), with whole vectors or 8 bits a number.

HNSW answers quickest at high recall and takes long to build; IVF builds quickly. Both keep the vectors once more.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

from ..errors import UserError
from .engine import Floats, Keys

FILE = "faiss.index"
LINKS = 32  # of a label to others in the graph
BUILD_EFFORT = 100
MOST_CENTRES = 65_536
KINDS = ("hnsw", "hnsw-8bit", "ivf", "ivf-8bit")


class FaissEngine:
    """One of KINDS. Effort is efSearch of HNSW, and the lists looked into (nprobe) of IVF."""

    backend: ClassVar[str] = "faiss"
    most = 2**14

    def __init__(self, kind: str = "hnsw") -> None:
        assert kind in KINDS, kind
        self.faiss = import_faiss()
        self.kind, self.effort = kind, 1
        self.graph, self.short = kind.startswith("hnsw"), kind.endswith("8bit")
        self.surplus, self.forgets = 0.25 if self.short else 0.0, not self.graph

    def build(self, keys_N: Keys, z_ND: Floats, directory: Path | None) -> None:
        del directory  # `save` writes it
        size, dim = z_ND.shape
        self.index = self._empty_graph(dim) if self.graph else self._empty_lists(size, dim)
        self.index.train(z_ND)
        self.index.add_with_ids(z_ND, keys_N)

    def efforts(self) -> list[int]:
        if self.graph:
            return [100, 125, 150, 200, 250, 300, 400, 600, 800, 1200, 1600, 3200]
        centres: int = self.index.nlist
        steps = [round(2 ** (half / 2)) for half in range(2 * centres.bit_length())]
        return [*sorted({step for step in steps if step < centres}), centres]

    def search(self, h_QD: Floats, width: int) -> Keys:
        width = min(width, self.index.ntotal)
        if self.graph:
            how = self.faiss.SearchParametersHNSW(efSearch=max(self.effort, width))
        else:
            how = self.faiss.SearchParametersIVF(nprobe=self.effort)
        keys_QW: Keys = self.index.search(h_QD, width, params=how)[1]
        return keys_QW

    def add(self, keys_N: Keys, z_ND: Floats) -> None:
        self.index.add_with_ids(z_ND, keys_N)

    def remove(self, keys_N: Keys) -> None:
        if self.forgets:
            self.index.remove_ids(keys_N)

    def save(self, directory: Path) -> dict[str, Any]:
        self.faiss.write_index(self.index, str(directory / FILE))
        return {"kind": self.kind, "effort": self.effort}

    def open(self, directory: Path, facts: dict[str, Any]) -> None:
        try:
            self.index = self.faiss.read_index(str(directory / FILE))
        except RuntimeError as error:
            raise UserError(f"{directory / FILE}: missing or damaged ({_first_line(error)}).") from None
        self.effort = int(facts["effort"])

    def close(self) -> None:
        """Everything is in memory."""

    def _empty_graph(self, dim: int) -> Any:
        faiss = self.faiss
        if self.short:
            graph = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, LINKS, faiss.METRIC_INNER_PRODUCT)
        else:
            graph = faiss.IndexHNSWFlat(dim, LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = BUILD_EFFORT
        with_keys = faiss.IndexIDMap(graph)
        graph.this.disown()
        with_keys.own_fields = True
        return with_keys

    def _empty_lists(self, size: int, dim: int) -> Any:
        faiss = self.faiss
        centres = number_of_centres(size)
        nearest = faiss.IndexFlatIP(dim)
        inner, bits = faiss.METRIC_INNER_PRODUCT, faiss.ScalarQuantizer.QT_8bit
        lists = (
            faiss.IndexIVFScalarQuantizer(nearest, dim, centres, bits, inner)
            if self.short
            else faiss.IndexIVFFlat(nearest, dim, centres, inner)
        )
        nearest.this.disown()
        lists.own_fields = True
        lists.cp.min_points_per_centroid = 1
        return lists


def number_of_centres(size: int) -> int:
    """About 2 sqrt(L): the centres and the lists that are looked into then cost about the same."""
    return max(1, min(round(2 * math.sqrt(size)), size // 4, MOST_CENTRES))


def import_faiss() -> Any:
    """The module, or a sentence on how to get it."""
    try:
        import faiss
    except ImportError:
        raise UserError('the backend faiss needs a package: pip install "primexmc[ann]".') from None
    return faiss


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1][:200]
