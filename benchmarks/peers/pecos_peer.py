"""XR-Linear under PECOS' own Python: `python pecos_peer.py DIR` (docs/compare.md tells what lies there)."""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from scipy.sparse import csr_matrix, load_npz


def main(place: Path) -> None:
    task = json.loads((place / "task.json").read_text(encoding="utf-8"))
    train_NF, query_QF, labels_NL = (
        load_npz(place / f"{name}.npz").astype(np.float32).tocsr()
        for name in ("train_features", "query_features", "train_labels")
    )
    started = time.perf_counter()
    trees = _train(train_NF, labels_NL, task)
    trained = time.perf_counter()
    score_QL = _predict(trees, query_QF, task)
    np.save(place / "predictions.npy", _ranked(score_QL, task["top"]))
    answer = {"train_s": trained - started, "predict_s": time.perf_counter() - trained, "version": _version()}
    (place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _train(train_NF: csr_matrix, labels_NL: csr_matrix, task: dict) -> list:
    """Each tree with its own clustering of the labels, by the features of their positives."""
    settings, threads = task["settings"], task["threads"]
    embedding_LF = LabelEmbeddingFactory.create(labels_NL, train_NF, method="pifa")
    trees = []
    for tree in range(settings["num_trees"]):
        chain = Indexer.gen(
            embedding_LF,
            indexer_type="hierarchicalkmeans",
            nr_splits=settings["nr_splits"],
            max_leaf_size=settings["max_leaf_size"],
            seed=task["seed"] * settings["num_trees"] + tree,
            threads=threads,
        )
        trees.append(
            XLinearModel.train(
                train_NF,
                labels_NL,
                C=chain,
                negative_sampling_scheme=settings["negative_sampling"],
                Cp=settings["cost"],
                Cn=settings["cost"],
                threshold=settings["threshold"],
                threads=threads,
            )
        )
    return trees


def _predict(trees: list, query_QF: csr_matrix, task: dict) -> csr_matrix:
    """The sum over the trees; a label that a tree's beam misses gets nothing from it."""
    beam = max(task["settings"]["beam_size"], -(-task["top"] // task["settings"]["max_leaf_size"]))
    options = {"only_topk": task["top"], "beam_size": beam, "threads": task["threads"]}
    return sum(tree.predict(query_QF, post_processor="l3-hinge", **options) for tree in trees).tocsr()


def _ranked(score_QL: csr_matrix, top: int) -> np.ndarray:
    """The stored labels of each row by falling score, ties by id; -1 after the last."""
    pred_QK = np.full((score_QL.shape[0], top), -1, dtype=np.int64)
    for row, (start, stop) in enumerate(itertools.pairwise(score_QL.indptr.tolist())):
        ids, scores = score_QL.indices[start:stop], score_QL.data[start:stop]
        best = ids[np.lexsort((ids, -scores))][:top]
        pred_QK[row, : len(best)] = best
    return pred_QK


def _version() -> str:
    from importlib.metadata import version

    return f"libpecos {version('libpecos')}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
