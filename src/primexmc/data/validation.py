"""Which training queries are held out for validation: decided by uids and labels, never by a query's place.

The uids are hashed, and queries are held out by rising hash until there are enough: round(fraction x N), at most
`largest`. Queries that share a uid stay together, so a few less or more may be held out. A query stays in train when
it is the last there with one of its labels: published test splits hardly ask for labels that train does not have, and
a validation that does would choose what is good for such labels. Only where nearly all queries are the last ones of a
label are they held out all the same. With two or more distinct uids at least one query is held out and one stays.
Fraction 0 or `largest` 0 holds out nothing. Shapes: Q queries, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from .texts import text_hashes

Rows = NDArray[np.int64]
LOOKED_AT = 10  # times as many queries, before too few is what there is
FEWEST = 0.5  # of the queries that are wanted: with fewer, labels do not matter


def held_out(uids: Sequence[str], positives: csr_matrix, fraction: float, largest: int) -> NDArray[np.bool_]:
    """True for the queries that are held out."""
    num_queries = len(uids)
    val_Q = np.zeros(num_queries, dtype=np.bool_)
    if fraction <= 0 or largest <= 0 or num_queries < 2:
        return val_Q
    wanted = min(max(min(round(fraction * num_queries), largest), 1), num_queries - 1)
    groups = _by_hash(uids, LOOKED_AT * wanted)
    chosen = _not_the_last(groups, positives, wanted)
    if sum(map(len, chosen)) < FEWEST * wanted:
        chosen = _first(groups, wanted)
    val_Q[np.concatenate(chosen)] = True
    return val_Q if not val_Q.all() else np.zeros_like(val_Q)


def _by_hash(uids: Sequence[str], most: int) -> list[Rows]:
    """The rows of each uid, by rising hash; so many uids at most."""
    hashes_Q = text_hashes(uids)
    order = np.argsort(hashes_Q, kind="stable")
    starts = np.flatnonzero(np.diff(hashes_Q[order])) + 1
    return np.split(order, starts) if len(starts) < most else np.split(order[: starts[most]], starts[:most])[:-1]


def _not_the_last(groups: list[Rows], positives: csr_matrix, wanted: int) -> list[Rows]:
    """Groups in order, without those that a label would miss: its last training queries."""
    left_L = np.bincount(positives.indices, minlength=positives.shape[1])
    chosen: list[Rows] = []
    count = 0
    for rows in groups:
        if count >= wanted:
            break
        labels, times = np.unique(positives[rows].indices, return_counts=True)
        if count + len(rows) <= wanted and np.all(left_L[labels] > times):
            left_L[labels] -= times
            chosen.append(rows)
            count += len(rows)
    return chosen


def _first(groups: list[Rows], wanted: int) -> list[Rows]:
    """Groups in order, as many as fit; one at least."""
    total = np.cumsum([len(rows) for rows in groups])
    return groups[: max(1, int(np.searchsorted(total, wanted, side="right")))]
