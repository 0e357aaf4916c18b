"""Texts as tf-idf vectors: words of two or more characters, 1 + ln tf, smooth idf, length 1.

Shapes: N texts, W words, T words in all texts.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

WORD = re.compile(r"\w\w+")


class TfIdf:
    """The vocabulary and the idf of some texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.id_of: dict[str, int] = {}
        counts_NW = self._counts(texts, grow=True)
        num_texts_W = np.bincount(counts_NW.indices, minlength=len(self.id_of))
        self.idf_W: NDArray[np.float64] = np.log((1 + counts_NW.shape[0]) / (1 + num_texts_W)) + 1

    @classmethod
    def from_words(cls, words: Sequence[str], idf_W: NDArray[Any]) -> TfIdf:
        """The inverse of `words` and `idf_W`."""
        if not len(words) == len(set(words)) == len(idf_W):
            raise ValueError(f"{len(words)} words, {len(set(words))} of them different, and {len(idf_W)} weights")
        tfidf = cls(())
        tfidf.id_of = {word: number for number, word in enumerate(words)}
        tfidf.idf_W = np.asarray(idf_W, dtype=np.float64)
        return tfidf

    @property
    def words(self) -> list[str]:
        """In the order of the columns."""
        return list(self.id_of)

    def vectors(self, texts: Iterable[str]) -> csr_matrix:
        """One row of length 1 for each text (of length 0 where it has no known word), float32."""
        vectors_NW = self._counts(texts, grow=False)
        weights_T = (1 + np.log(vectors_NW.data)) * self.idf_W[vectors_NW.indices]
        rows_T = np.repeat(np.arange(vectors_NW.shape[0]), np.diff(vectors_NW.indptr))
        length_N = np.sqrt(np.bincount(rows_T, weights=weights_T**2, minlength=vectors_NW.shape[0]))
        vectors_NW.data = (weights_T / length_N[rows_T]).astype(np.float32)
        return vectors_NW

    def _counts(self, texts: Iterable[str], *, grow: bool) -> csr_matrix:
        ids, indptr = array("i"), array("q", [0])
        for text in texts:
            words = WORD.findall(text.lower())
            if grow:
                ids.extend(self.id_of.setdefault(word, len(self.id_of)) for word in words)
            else:
                ids.extend(self.id_of[word] for word in words if word in self.id_of)
            indptr.append(len(ids))
        ones_T = np.ones(len(ids), dtype=np.float32)
        shape = (len(indptr) - 1, len(self.id_of))
        counts_NW = csr_matrix((ones_T, np.frombuffer(ids, np.int32), np.frombuffer(indptr, np.int64)), shape=shape)
        counts_NW.sum_duplicates()
        return counts_NW
