"""The lexical voice: names, part numbers and identifiers, which an encoder blurs, speak for labels word by word.

Shapes: Q queries, W words, L labels, C candidates a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from torch import Tensor

from ..data.texts import Texts
from ..data.tfidf import TfIdf
from .candidates import by_columns, by_rows

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
ROWS_COST = 2.5  # what an entry costs that is met by words, where one that is met by labels costs 1: measured

TEXT_WEIGHT = 1.0  # of the words of its own text; twice that costs other labels their first places


@dataclass(frozen=True)
class Lexical:
    """A sparse linear classifier on tf-idf words (linear.py)."""

    tfidf: TfIdf
    weights_WL: csr_matrix
    bias_L: Floats

    def scores(self, texts: Sequence[str], ids_QC: Ids) -> Floats:
        """What the words of each text say of its candidates."""
        words_QC = self._of_words(self.tfidf.vectors(texts), ids_QC)
        scores_QC: Floats = words_QC + np.where(ids_QC >= 0, self.bias_L[ids_QC], 0)
        return scores_QC

    def votes(self, text: str, label: int) -> tuple[list[tuple[str, float]], float]:
        """What each known word of the text says of a label, and the label's bias; together its score."""
        x_1W, words = self.tfidf.vectors([text]), self.tfidf.words
        weights = [float(self.weights_WL[word, label]) for word in x_1W.indices.tolist()]
        values = zip(x_1W.indices.tolist(), x_1W.data.tolist(), weights, strict=True)
        return [(words[word], value * weight) for word, value, weight in values], float(self.bias_L[label])

    def _of_words(self, vectors_QW: csr_matrix, ids_QC: Ids) -> Floats:
        """Common words have weights for thousands of labels, some labels for thousands of words: the shorter way."""
        labels_W, words_L = self._lengths
        if ROWS_COST * labels_W[vectors_QW.indices].sum() < words_L[ids_QC].sum():
            return by_rows(vectors_QW, self.weights_WL, ids_QC)
        return by_columns(vectors_QW, self._weights_LW, ids_QC)

    @cached_property
    def _weights_LW(self) -> csr_matrix:
        return csr_matrix(self.weights_WL.T)

    @cached_property
    def _lengths(self) -> tuple[Ids, Ids]:
        """How many labels each word has weights for, and how many words each label."""
        labels_W, words_L = (np.diff(matrix.indptr).astype(np.int64) for matrix in (self.weights_WL, self._weights_LW))
        return labels_W, words_L

    def with_labels(self, old_of_new: Ids) -> Lexical:
        """For a changed table of labels: each one's old row, -1 where it is new and nothing is known of it yet."""
        known = old_of_new >= 0
        bias_L = np.full(len(old_of_new), unknown_bias(self.bias_L), np.float32)
        bias_L[known] = self.bias_L[old_of_new[known]]
        ones = np.ones(int(known.sum()), np.float32)
        shape = (len(self.bias_L), len(old_of_new))
        moves = csr_matrix((ones, (old_of_new[known], np.flatnonzero(known))), shape=shape)
        return Lexical(self.tfidf, csr_matrix(self.weights_WL @ moves), bias_L)

    def with_texts(self, ids_M: Ids, texts: Sequence[str]) -> Lexical:
        """The words of labels that no query has taught: those of their own texts, in the place of any others."""
        x_MW, L = self.tfidf.vectors(texts), len(self.bias_L)
        x_MW.data = (TEXT_WEIGHT * x_MW.data).astype(np.float16).astype(np.float32)  # as they are kept
        of_others_L = np.ones(L, np.float32)
        of_others_L[ids_M] = 0
        others_WL = csr_matrix(self.weights_WL @ diags(of_others_L, format="csr", dtype=np.float32))
        others_WL.eliminate_zeros()
        places_ML = csr_matrix((np.ones(len(ids_M), np.float32), ids_M, np.arange(len(ids_M) + 1)), (len(ids_M), L))
        return Lexical(self.tfidf, csr_matrix(others_WL + x_MW.T @ places_ML), self.bias_L)

    def compact(self, smallest: float) -> Lexical:
        """As it is kept: weights in half precision, and those that are smaller left out, so that it is quicker."""
        weights_WL = self.weights_WL.copy()
        weights_WL.data = weights_WL.data.astype(np.float16).astype(np.float32)
        weights_WL.data[np.abs(weights_WL.data) < smallest] = 0
        weights_WL.eliminate_zeros()
        return Lexical(self.tfidf, weights_WL, self.bias_L)

    def tensors(self) -> dict[str, Tensor]:
        """Everything, for safetensors."""
        words, weights = Texts.of(self.tfidf.words), self.weights_WL
        arrays: dict[str, NDArray[np.generic]] = {
            "word_bytes": words.blob,
            "word_starts": words.offsets,
            "idf": self.tfidf.idf_W,
            "weights": weights.data.astype(np.float16),
            "weight_labels": weights.indices.astype(np.int32),
            "weight_starts": weights.indptr.astype(np.int64),
            "bias": self.bias_L,
        }
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Lexical:
        """The inverse; a ValueError or KeyError where the tensors do not belong together."""
        a = {name: tensor.numpy() for name, tensor in tensors.items()}
        tfidf = TfIdf.from_words(list(Texts(a["word_bytes"], a["word_starts"])), a["idf"])
        shape = (len(a["idf"]), len(a["bias"]))
        content = (a["weights"].astype(np.float32), a["weight_labels"], a["weight_starts"])
        weights_WL = csr_matrix(content, shape=shape)
        weights_WL.check_format()
        return cls(tfidf, weights_WL, a["bias"])


def unknown_bias(bias_L: Floats) -> float:
    """For labels that it knows nothing of. The others' biases are below 0, and their words must make up for it: half of
    the mean is between a label that is wrong and one that is right."""
    return float(bias_L.mean() / 2) if len(bias_L) else 0.0
