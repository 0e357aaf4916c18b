"""An index around an engine: its finds are scored exactly, in rows of the model, and what it cannot do is done exactly.

Shapes: Q queries, L labels, D dimensions, K results a query, W finds of the engine a query; N labels that are new.
"""

from __future__ import annotations

import copy
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ..errors import UserError
from .engine import Engine
from .exact import ExactIndex
from .filtered import Filtered
from .index import Vectors
from .preselect import exact_scores
from .recall import Recall, tune
from .vectors import checked_vectors, kept_rows, same_rows

QUERIES_PER_BLOCK = 1024
WORTH_ASKING = 1 / 4  # of the labels; who wants more is answered exactly
CHANGED = 1 / 5  # of the labels; after that the engine is built anew


class ApproximateIndex:
    """Labels in an engine, and their vectors: scores and the order of equal ones are those of exact search."""

    def __init__(self, engine: Engine, z_LD: torch.Tensor) -> None:
        self.engine = engine
        self.lock = threading.RLock()  # shared with those that follow: engines need not bear changes during a search
        self.z_LD = checked_vectors(z_LD).float().cpu()
        self.keys_L = np.arange(len(z_LD), dtype=np.int64)  # a label that stays keeps its key
        self.next_key, self.num_dead, self.num_changed = len(z_LD), 0, 0
        self.recall: Recall | None = None
        self._by_hand: ExactIndex | None = None
        self._rows: NDArray[np.int64] | None = None
        self.queries_ND: torch.Tensor | None = None
        self.wanted, self.least, self.directory = 0.0, 0.0, Path()

    @classmethod
    def build(
        cls,
        engine: Engine,
        z_LD: torch.Tensor,
        queries_ND: torch.Tensor,
        directory: Path,
        *,
        wanted: float = 0.98,
        least: float = 0.95,
    ) -> ApproximateIndex:
        """Fills the engine and finds the least effort that gives the recall wanted on these queries.

        An index whose recall is below `least` is refused.
        """
        index = cls(engine, z_LD)
        index.queries_ND, index.directory = checked_vectors(queries_ND, z_LD.shape[1]).float().cpu(), directory
        index.wanted, index.least = wanted, least
        try:
            index.rebuild()
        except BaseException:
            engine.close()
            raise
        return index

    @property
    def backend(self) -> str:
        return self.engine.backend

    def __len__(self) -> int:
        return len(self.z_LD)

    @torch.inference_mode()
    def search(
        self, h_QD: Vectors, top: int, filtered: Any | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As in Index."""
        h_QD = checked_vectors(torch.as_tensor(h_QD), self.z_LD.shape[1]).float().cpu()
        assert top >= 1, top
        pairs = None if filtered is None else csr_matrix(filtered)
        assert pairs is None or pairs.shape == (len(h_QD), len(self)), "the filter is queries x labels"
        ids_QK = np.full((len(h_QD), top), -1, dtype=np.int64)
        scores_QK = np.full((len(h_QD), top), -np.inf, dtype=np.float32)
        for start in range(0, len(h_QD), QUERIES_PER_BLOCK):
            rows = slice(start, start + QUERIES_PER_BLOCK)
            ids_QK[rows], scores_QK[rows] = self._block(h_QD[rows], top, None if pairs is None else pairs[rows])
        return ids_QK, scores_QK

    def add(self, z_ND: Vectors) -> None:
        """More labels, with the next ids."""
        new_ND = checked_vectors(torch.as_tensor(z_ND), self.z_LD.shape[1]).float().cpu()
        keys_N = np.arange(self.next_key, self.next_key + len(new_ND), dtype=np.int64)
        if len(self):
            with self.lock:
                self.engine.add(keys_N, new_ND.numpy())
        self.next_key += len(new_ND)
        self._put(torch.cat([self.z_LD, new_ND]), np.concatenate([self.keys_L, keys_N]), num_new=len(new_ND))

    def remove(self, ids: Any) -> None:
        """Labels go, and the later ones move up."""
        kept = kept_rows(len(self), ids)
        self._put(self.z_LD[torch.from_numpy(kept)], self.keys_L[kept])

    def follow(self, z_LD: torch.Tensor) -> ApproximateIndex:
        """An index of these labels. Vectors that were there before keep their keys, and both share what the engine
        holds: the old index drops what is not its own."""
        index = copy.copy(self)
        index.engine = copy.copy(self.engine)
        index._follow(z_LD)
        return index

    def _follow(self, z_LD: torch.Tensor) -> None:
        z_LD = checked_vectors(z_LD, self.z_LD.shape[1]).float().cpu()
        old_row_L = same_rows(self.z_LD, z_LD)
        new_N = np.flatnonzero(old_row_L < 0)
        keys_L = np.where(old_row_L >= 0, self.keys_L[old_row_L.clip(min=0)] if len(self) else 0, 0)
        keys_L[new_N] = np.arange(self.next_key, self.next_key + len(new_N))
        if len(new_N) and len(self):
            with self.lock:
                self.engine.add(keys_L[new_N], z_LD[torch.from_numpy(new_N)].numpy())
        self.next_key += len(new_N)
        self._put(z_LD, keys_L, num_new=len(new_N))

    def _put(self, z_LD: torch.Tensor, keys_L: NDArray[np.int64], num_new: int = 0) -> None:
        gone = np.setdiff1d(self.keys_L, keys_L)
        with self.lock:
            self.engine.remove(gone)
        self.num_dead += 0 if self.engine.forgets else len(gone)
        self.z_LD, self.keys_L = z_LD, keys_L
        self._changed(num_new + len(gone))

    def rebuild(self) -> None:
        """The engine anew, and its recall measured again where there are queries to measure it on."""
        self.keys_L, self._rows = np.arange(len(self), dtype=np.int64), None
        self.next_key, self.num_dead, self.num_changed = len(self), 0, 0
        if not len(self):
            return  # all were removed; the next that are added bring it here again
        self.engine.build(self.keys_L, self.z_LD.numpy(), self.directory)
        if self.queries_ND is not None:
            self.recall = tune(self.engine, self.z_LD, self.queries_ND, self.wanted)
            self._refuse_low_recall()

    def save(self, directory: Path) -> dict[str, Any]:
        """The engine's files, and which key each row has."""
        np.save(directory / "keys.npy", self.keys_L)
        recall = None if self.recall is None else self.recall.to_dict()
        counts = {"next_key": self.next_key, "num_dead": self.num_dead, "num_changed": self.num_changed}
        return {"recall": recall, "least": self.least, **counts, "engine": self.engine.save(directory)}

    @classmethod
    def load(cls, engine: Engine, directory: Path, z_LD: torch.Tensor, facts: dict[str, Any]) -> ApproximateIndex:
        """The inverse of `save`."""
        index = cls(engine, z_LD)
        index.keys_L = np.load(directory / "keys.npy", allow_pickle=False)
        index.next_key, index.num_dead = int(facts["next_key"]), int(facts["num_dead"])
        index.num_changed, index.directory, index.least = int(facts["num_changed"]), directory, facts["least"]
        index.recall = None if facts["recall"] is None else Recall(**facts["recall"])
        index._refuse_low_recall()
        engine.open(directory, facts["engine"])
        return index

    def close(self) -> None:
        """Lets go of files and connections."""
        self.engine.close()

    def _refuse_low_recall(self) -> None:
        if self.recall is not None and self.recall.recall < self.least:
            raise UserError(
                f"the index finds {100 * self.recall.recall:.1f} % of the best {self.recall.at} labels, and at least "
                f"{100 * self.least:.0f} % are asked for: raise search.recall, take another search.faiss, "
                f"or allow it with --set search.min_recall={self.recall.recall - 0.005:.2f}."
            )

    def _exact(self) -> ExactIndex:
        """The same labels, for what the engine cannot do."""
        if self._by_hand is None:
            self._by_hand = ExactIndex(self.z_LD)
        return self._by_hand

    def _changed(self, count: int) -> None:
        self._by_hand = self._rows = None
        self.num_changed += count
        if self.num_changed > CHANGED * len(self):
            self.rebuild()

    def _block(
        self, h_BD: torch.Tensor, top: int, pairs: csr_matrix | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        filtered = Filtered(pairs)
        width = math.ceil((top + filtered.most_of_a_query()) * (1 + self.engine.surplus)) + min(self.num_dead, top)
        if width > min(WORTH_ASKING * len(self), self.engine.most):
            return self._exact().search(h_BD, top, pairs)
        rows_N, labels_N = self._found(h_BD, width, filtered)
        counts_B = torch.bincount(rows_N, minlength=len(h_BD))
        scores_N = exact_scores(h_BD, self.z_LD, counts_B, labels_N)
        ids_BK, scores_BK = _best(rows_N.numpy(), labels_N.numpy(), scores_N.numpy(), len(h_BD), top)
        short = np.flatnonzero(ids_BK[:, -1] < 0)  # fewer than there are: the engine lost its way
        if len(short):
            theirs = None if pairs is None else pairs[short]
            ids_BK[short], scores_BK[short] = self._exact().search(h_BD[short], top, theirs)
        return ids_BK, scores_BK

    def _found(self, h_BD: torch.Tensor, width: int, filtered: Filtered) -> tuple[torch.Tensor, torch.Tensor]:
        """(query, label) of what the engine finds, by query, without what is gone or filtered."""
        with self.lock:
            keys_BW = self.engine.search(h_BD.numpy(), width)
        labels_BW = self._row_of_key()[np.where(keys_BW < self.next_key, keys_BW, -1)]
        rows_N, places_N = np.nonzero(labels_BW >= 0)
        labels_N = labels_BW[rows_N, places_N]
        if len(filtered.rows):
            stays_N = ~np.isin(rows_N * len(self) + labels_N, filtered.rows * len(self) + filtered.labels)
            rows_N, labels_N = rows_N[stays_N], labels_N[stays_N]
        return torch.from_numpy(rows_N), torch.from_numpy(labels_N)

    def _row_of_key(self) -> NDArray[np.int64]:
        """Each key's row, -1 for those that are gone; the last entry is for what is no key of ours."""
        if self._rows is None:
            self._rows = np.full(self.next_key + 1, -1, dtype=np.int64)
            self._rows[self.keys_L] = np.arange(len(self))
        return self._rows


def _best(
    rows_N: NDArray[np.int64], labels_N: NDArray[np.int64], scores_N: NDArray[np.float32], size: int, top: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Each row's best by falling score, equal ones by rising label."""
    order_N = np.lexsort((labels_N, -scores_N, rows_N))
    rows_N, labels_N, scores_N = rows_N[order_N], labels_N[order_N], scores_N[order_N]
    ranks_N = np.arange(len(rows_N)) - np.searchsorted(rows_N, rows_N)
    shown_N = ranks_N < top
    ids_BK = np.full((size, top), -1, dtype=np.int64)
    scores_BK = np.full((size, top), -np.inf, dtype=np.float32)
    ids_BK[rows_N[shown_N], ranks_N[shown_N]] = labels_N[shown_N]
    scores_BK[rows_N[shown_N], ranks_N[shown_N]] = scores_N[shown_N]
    return ids_BK, scores_BK
