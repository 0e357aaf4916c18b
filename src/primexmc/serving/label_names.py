"""LabelNames: labels found by parts of their names.

Shapes: L labels, N found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IdArray = npt.NDArray[np.int64]


class LabelNames:
    """Names folded to one case, once; a search reads all of them: 0.1 s for a million."""

    def __init__(self, names: Sequence[str], counts_L: IdArray) -> None:
        self._folded = [name.casefold() for name in names]
        self._rank_L = np.empty(len(names), dtype=np.int64)
        self._rank_L[np.argsort(-counts_L, kind="stable")] = np.arange(len(names))

    def find(self, question: str, among_L: npt.NDArray[np.bool_] | None = None) -> IdArray:
        """Ids of the labels whose names hold every word of the question: the name itself first, then names that
        begin with it, then the others; each of these by falling number of training queries."""
        whole, words = " ".join(question.casefold().split()), question.casefold().split()
        ids_N = np.arange(len(self._folded))
        for word in words:
            ids_N = np.array([i for i in ids_N.tolist() if word in self._folded[i]], dtype=np.int64)
        if among_L is not None:
            ids_N = ids_N[among_L[ids_N]]
        kinds_N = np.fromiter((self._kind(i, whole) for i in ids_N.tolist()), np.int64, len(ids_N)) if words else 0
        return ids_N[np.lexsort((self._rank_L[ids_N], np.broadcast_to(kinds_N, ids_N.shape)))]

    def _kind(self, label: int, whole: str) -> int:
        name = self._folded[label]
        return 0 if name == whole else 1 if name.startswith(whole) else 2
