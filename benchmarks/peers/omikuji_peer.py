"""Parabel and Bonsai under omikuji's Python: `python omikuji_peer.py DIR`; docs/compare.md tells what lies in DIR."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import omikuji
from scipy.sparse import csr_matrix, load_npz


def main(place: Path) -> None:
    task = json.loads((place / "task.json").read_text(encoding="utf-8"))
    train_NF, query_QF, labels_NL = (
        load_npz(place / f"{name}.npz").tocsr() for name in ("train_features", "query_features", "train_labels")
    )
    write_libsvm(place / "train.txt", train_NF, labels_NL)
    started = time.perf_counter()
    parameters = omikuji.Model.default_hyper_param()
    for name, value in task["settings"].items():
        if name != "beam_size":
            setattr(parameters, name, value)
    model = omikuji.Model.train_on_data(str(place / "train.txt"), parameters, task["threads"])
    trained = time.perf_counter()
    model.densify_weights(n_threads=task["threads"])  # predicts faster, the same
    model.init_prediction_thread_pool(task["threads"])
    beam = max(task["settings"]["beam_size"], -(-task["top"] // task["settings"]["min_branch_size"]))
    np.save(place / "predictions.npy", predict(model, query_QF, task["top"], beam))
    answer = {
        "train_s": trained - started,
        "predict_s": time.perf_counter() - trained,
        "version": f"omikuji {version('omikuji')}",
    }
    (place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def write_libsvm(path: Path, train_NF: csr_matrix, labels_NL: csr_matrix) -> None:
    """A line with the three sizes, then a line a text: its labels, its features; omikuji wants some of both."""
    usable = np.flatnonzero((np.diff(train_NF.indptr) > 0) & (np.diff(labels_NL.indptr) > 0))
    train_NF, labels_NL = train_NF[usable], labels_NL[usable]
    with path.open("w", encoding="ascii") as file:
        file.write(f"{train_NF.shape[0]} {train_NF.shape[1]} {labels_NL.shape[1]}\n")
        for row in range(train_NF.shape[0]):
            labels = ",".join(map(str, labels_NL.indices[labels_NL.indptr[row] : labels_NL.indptr[row + 1]].tolist()))
            ids, values = _features(train_NF, row)
            pairs = " ".join(f"{number}:{value:.6g}" for number, value in zip(ids, values, strict=True))
            file.write(f"{labels} {pairs}\n")


def predict(model: omikuji.Model, query_QF: csr_matrix, top: int, beam: int) -> np.ndarray:
    """Ranked ids, -1 after the last."""
    pred_QK = np.full((query_QF.shape[0], top), -1, dtype=np.int64)
    for row in range(query_QF.shape[0]):
        best = [label for label, _ in model.predict(list(zip(*_features(query_QF, row), strict=True)), beam, top)]
        pred_QK[row, : len(best)] = best
    return pred_QK


def _features(matrix: csr_matrix, row: int) -> tuple[list[int], list[float]]:
    cells = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[cells].tolist(), matrix.data[cells].tolist()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
