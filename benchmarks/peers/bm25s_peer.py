"""BM25 over label texts under bm25s' own Python: `python bm25s_peer.py DIR`; docs/compare.md tells what lies in DIR."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import bm25s
import numpy as np


def main(place: Path) -> None:
    task, labels, queries = (
        json.loads((place / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("task", "label_texts", "query_texts")
    )
    settings = task["settings"]
    options = {"stopwords": settings["stopwords"] or None, "show_progress": False}
    started = time.perf_counter()
    index = bm25s.BM25(k1=settings["k1"], b=settings["b"], method=settings["variant"])
    index.index(bm25s.tokenize(labels, **options), show_progress=False)
    indexed = time.perf_counter()
    np.save(place / "predictions.npy", search(index, bm25s.tokenize(queries, **options), task))
    answer = {
        "train_s": indexed - started,
        "predict_s": time.perf_counter() - indexed,
        "version": f"bm25s {version('bm25s')}",
    }
    (place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def search(index: bm25s.BM25, tokens: object, task: dict) -> np.ndarray:
    """Ranked ids, -1 where a label shares no word with the query."""
    num_labels = index.scores["num_docs"]
    ids_QK, scores_QK = index.retrieve(
        tokens, k=min(task["top"], num_labels), n_threads=task["threads"], show_progress=False
    )
    return np.where(scores_QK > 0, ids_QK, -1).astype(np.int64)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
