"""PrimeClassifier: PRIME as an estimator of scikit-learn.

Shapes: N texts, L labels, K answers a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ..data.corpus import Corpus
from ..errors import UserError, did_you_mean
from ..evaluation.metrics import RankingMetrics
from .targets import Targets, indicator, places, read_targets

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise UserError('scikit-learn is missing: pip install "primexmc[sklearn]".') from None

METRICS = ("P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5", "R@10", "R@100")
TOP_SCORED = 100


class PrimeClassifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Names the right few of many labels for a text.

    `fit(texts, y)` takes y as a list of labels a text, as one label a text, or as an indicator matrix, dense or sparse;
    `predict` answers in the same form. Labels may be texts or whole numbers.

    preset, settings, device: as for `primexmc.train`; `settings` are values like {"training.epochs": 30}.
    label_texts: what the encoder reads of each label: a mapping from labels, or a sequence in the order of `classes_`.
        Without it, a label is its own text.
    top: at most so many labels are predicted for a text.
    threshold: of these, the ones that are right with at least this probability; None takes all. One label a text is
        always the best one.
    metric: what `score` measures, as a share: "P@1" (default) and others of `primexmc.evaluate`.

    It does not call itself a classifier in scikit-learn's sense (`is_classifier`), because scikit-learn then refuses
    lists of labels in cross-validation.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        settings: Mapping[str, Any] | None = None,
        label_texts: Mapping[Any, str] | Sequence[str] | None = None,
        top: int = 5,
        threshold: float | None = 0.5,
        metric: str = "P@1",
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.label_texts = label_texts
        self.top = top
        self.threshold = threshold
        self.metric = metric
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> PrimeClassifier:
        """Trains on texts and their labels."""
        from ..training.train import train

        texts, targets = _texts(X), read_targets(y)
        if len(texts) != len(targets.rows):
            raise UserError(f"X has {len(texts)} texts and y has {len(targets.rows)} rows; expected as many.")
        if not texts or not len(targets.classes):
            raise UserError(f"X has {len(texts)} texts and y {len(targets.classes)} labels; expected some of both.")
        corpus = Corpus.from_lists(texts, targets.rows, _label_texts(self.label_texts, targets))
        settings = {"training.device": self.device, **(self.settings or {})}
        self.model_ = train(corpus, self.preset, settings, quiet=not self.verbose)
        self.targets_ = Targets(targets.form, targets.classes, [])
        self.classes_ = targets.classes
        return self

    def predict(self, X: Any) -> Any:
        """The labels of each text, in the form of `y`, best first where they are lists."""
        ids_NK, values_NK = self._ranked(X, 1 if self._is_single else self.top)
        there_NK = ids_NK >= 0
        if self.threshold is not None and not self._is_single and self.model_.calibration is not None:
            there_NK &= values_NK >= self.threshold
        rows = [ids[there].tolist() for ids, there in zip(ids_NK, there_NK, strict=True)]
        return self.targets_.in_this_form(rows)

    def predict_top(self, X: Any, k: int | None = None) -> list[list[tuple[Any, float]]]:
        """The `k` best labels of each text (default: `top`), best first, each with its score."""
        check_is_fitted(self)
        found, plain = self.model_.predict(_texts(X), self.top if k is None else k), self.classes_.tolist()
        return [[(plain[answer.id], answer.score) for answer in row] for row in found]

    def predict_proba(self, X: Any) -> csr_matrix:
        """N x L, sparse: how likely each of a text's best `top` labels is right. The others are 0."""
        check_is_fitted(self)
        if self.model_.calibration is None:
            self.model_.calibrated(np.zeros((1, 1), dtype=np.float32))  # says why there are none
        ids_NK, p_NK = self._ranked(X, self.top)
        there_NK = ids_NK >= 0
        starts = np.concatenate([[0], np.cumsum(there_NK.sum(axis=1))])
        shape = (len(ids_NK), len(self.classes_))
        matrix = csr_matrix((p_NK[there_NK], ids_NK[there_NK], starts), shape=shape)
        matrix.sort_indices()
        return matrix

    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """N x L, dense: the score of every text and every label."""
        check_is_fitted(self)
        ids_NL, ranked_NL = self.model_.rank(_texts(X), len(self.classes_))
        scores_NL = np.empty_like(ranked_NL)
        np.put_along_axis(scores_NL, ids_NL, ranked_NL, axis=1)
        return scores_NL

    def score(self, X: Any, y: Any) -> float:
        """`metric` as a share, 1 at best. Labels that were not in `fit` count as not found."""
        check_is_fitted(self)
        if self.metric not in METRICS:
            hint = did_you_mean(self.metric, METRICS)
            raise UserError(f'metric is one of {", ".join(METRICS)}, not "{self.metric}".{hint}')
        rows = places(y, self.targets_)
        num_labels = max(len(self.classes_), 1 + max((place for row in rows for place in row), default=0))
        ids_NK, _ = self.model_.rank(_texts(X), TOP_SCORED)
        metrics = RankingMetrics(np.ones(num_labels))
        metrics.update(ids_NK, indicator(rows, num_labels))
        return float(metrics.result()[self.metric]) / 100

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        tags.target_tags.required, tags.target_tags.multi_output = True, True
        tags.no_validation = True  # scikit-learn's validation is of numbers
        return tags

    @property
    def _is_single(self) -> bool:
        check_is_fitted(self)
        return self.targets_.form == "single"

    def _ranked(self, X: Any, top: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Ids of the best labels, and their probabilities, or their scores where there is no calibration."""
        check_is_fitted(self)
        if top < 1:
            raise UserError(f"top is at least 1, not {top}.")
        ids_NK, scores_NK = self.model_.rank(_texts(X), top)
        calibration = self.model_.calibration
        return ids_NK, scores_NK.astype(np.float64) if calibration is None else calibration(scores_NK)


def _texts(X: Any) -> list[str]:
    """A list, an array, a column or a table of one column."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    if isinstance(X, str) or not hasattr(X, "__iter__"):
        raise UserError('X is a list of texts; for one text write ["..."].')
    texts = list(X)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise UserError(f"X[{number}] is {text!r:.60}; expected a text.")
    return texts


def _label_texts(given: Mapping[Any, str] | Sequence[str] | None, targets: Targets) -> list[str]:
    labels = targets.classes.tolist()
    if given is None:
        return [str(label) for label in labels]
    if isinstance(given, Mapping):
        return [given.get(label, str(label)) for label in labels]
    if len(given) != len(labels):
        raise UserError(f"label_texts has {len(given)} texts, but y has {len(labels)} labels; expected one a label.")
    return list(given)
