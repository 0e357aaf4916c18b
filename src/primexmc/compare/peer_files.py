"""The plain files between us and a peer: what it reads and what it answers (docs/compare.md has the list)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, identity, save_npz, vstack

from ..data.corpus import Corpus, Split
from ..data.tfidf import TfIdf
from ..errors import UserError
from ..evaluation.hits import IntArray, positives_only

TASK, ANSWER, PREDICTIONS = "task.json", "answer.json", "predictions.npy"


def write_features(place: Path, corpus: Corpus, *, label_rows: bool) -> None:
    """Tf-idf of the training texts, after them those of the labels, each positive for itself; and of the queries."""
    train, queries = corpus.split("train"), corpus.split("test")
    tfidf = TfIdf(itertools.chain(train.texts, corpus.labels.texts) if label_rows else train.texts)
    features, labels = [tfidf.vectors(train.texts)], [positives_only(train.positives)]
    if label_rows:
        features.append(tfidf.vectors(corpus.labels.texts))
        labels.append(identity(len(corpus.labels), dtype=np.float32, format="csr"))
    save_npz(place / "train_features.npz", csr_matrix(vstack(features, format="csr")), compressed=False)
    save_npz(place / "train_labels.npz", csr_matrix(vstack(labels, format="csr")), compressed=False)
    save_npz(place / "query_features.npz", tfidf.vectors(queries.texts), compressed=False)


def write_texts(place: Path, corpus: Corpus) -> None:
    """The texts of labels and queries as two lists."""
    _write_json(place / "label_texts.json", list(corpus.labels.texts))
    _write_json(place / "query_texts.json", list(corpus.split("test").texts))


def write_task(place: Path, *, top: int, threads: int, seed: int, settings: Mapping[str, Any]) -> None:
    _write_json(place / TASK, {"top": top, "threads": threads, "seed": seed, "settings": dict(settings)})


def read_answer(place: Path, corpus: Corpus, name: str) -> tuple[IntArray, dict[str, Any]]:
    """The ranked ids, and what the peer says of itself."""
    try:
        answer = json.loads((place / ANSWER).read_text(encoding="utf-8"))
        pred_QK = np.load(place / PREDICTIONS, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: its answer in {place} cannot be read ({error}); see peer.log there.") from None
    num_queries, num_labels = len(corpus.split("test")), len(corpus.labels)
    fits = pred_QK.ndim == 2 and len(pred_QK) == num_queries and np.issubdtype(pred_QK.dtype, np.integer)
    if not fits or (pred_QK.size and not -1 <= pred_QK.min() <= pred_QK.max() < num_labels):
        raise UserError(f"{name}: {place / PREDICTIONS} is not {num_queries} rows of label ids below {num_labels}.")
    return pred_QK.astype(np.int64), answer


def candidates_wanted(queries: Split, top: int) -> int:
    """So many that `top` are left when the filtered pairs are gone."""
    if queries.filtered is None:
        return top
    return top + int(np.diff(queries.filtered.indptr).max(initial=0))


def without_filtered(pred_QC: IntArray, queries: Split, top: int) -> IntArray:
    """The first `top` candidates of each row that its filter lets through, -1 after the last."""
    pred_QK = np.full((len(pred_QC), top), -1, dtype=np.int64)
    filtered = csr_matrix(queries.positives.shape) if queries.filtered is None else queries.filtered
    for row, candidates in enumerate(pred_QC):
        removed = filtered.indices[filtered.indptr[row] : filtered.indptr[row + 1]]
        allowed = candidates[(candidates >= 0) & ~np.isin(candidates, removed)][:top]
        pred_QK[row, : len(allowed)] = allowed
    return pred_QK


def _write_json(path: Path, value: dict[str, Any] | Iterable[str]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8", errors="replace")
