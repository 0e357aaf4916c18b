"""PrimeModel: a trained model that answers. Text -> vector -> nearest prototypes -> labels by name.

Shapes: Q queries, L labels, K answers a query, D dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional

from ..config import Settings
from ..data.corpus import Labels
from ..errors import UserError
from ..fusion.blend import MODES, OF_CLASSIFIER, Blend, Weights
from ..fusion.candidates import best_of
from ..fusion.lexical import Lexical
from ..retrieval.exact import ExactIndex
from ..retrieval.index import Index
from .calibration import Calibration
from .centroids import Centroids
from .encode import TextReader, as_float32, pick_device, wants_bf16
from .encoder import TextEncoder
from .memory import Memory
from .mixture import NO_MIXTURE, Mixture
from .network import PrimeNetwork
from .selection import Selection
from .side_by_side import side_by_side
from .vectors import usual_share, vectors_of
from .voices import Voices

FloatArray = npt.NDArray[np.float32]
IdArray = npt.NDArray[np.int64]
MOST_INT8_COST = 0.2  # points of P@1 on validation


class Prediction(NamedTuple):
    """One answer: the label's name, its uid, its row among the labels, and the cosine of query and prototype, or in
    other modes than "theta" also that with the classifier's vector, and what the other voices add."""

    label: str
    uid: str
    id: int
    score: float


@dataclass
class PrimeModel:
    """Labels, the trained network and the finished prototypes.

    `index` searches the prototypes; whoever puts others in their place calls `labels_changed`.
    """

    settings: Settings
    labels: Labels
    label_counts_L: IdArray  # training queries of each label, for propensities
    num_train_queries: int
    network: PrimeNetwork
    prototypes_LD: Tensor  # of length 1; those of added labels, and weighted means (mixture), are shorter
    centroids: Centroids  # that went into the prototypes
    memory: Memory | None = None  # of the training queries
    trained_L: Tensor | None = None  # which labels were trained and not added later; None: all of them
    lexical: Lexical | None = None
    classifier_LD: Tensor | None = None  # W, of length 1; the prototype where a label was added later
    mixture: Mixture = NO_MIXTURE  # of text and centroid in the prototypes of trained labels
    blend: Blend | None = None  # how much memory, words and W count beside the prototypes
    calibrations: dict[str, Calibration] = field(default_factory=dict)  # from scores to probabilities, by mode
    facts: dict[str, Any] = field(default_factory=dict)  # how it was made: data, epochs, validation, seconds

    def __post_init__(self) -> None:
        self.network.eval().requires_grad_(False)
        settings = self.settings
        self.mode: str = settings.search.mode
        encoder = self._encoder_for_queries()
        self._reader = TextReader(encoder, settings.data.query_tokens, settings.encoder.query_prefix)
        self._share = usual_share(self)
        self.index: Index = ExactIndex(vectors_of(self, self._share), precision=settings.search.precision)
        self._other_indexes: dict[float, Index] = {}
        self.voices = Voices(self)

    def _encoder_for_queries(self) -> TextEncoder:
        """In 8-bit numbers where that is wanted, or known to cost next to nothing."""
        encoder, wanted = self.network.encoder, self.settings.search.encoder
        cheap = wanted == "auto" and self.facts.get("int8_cost", MOST_INT8_COST) < MOST_INT8_COST
        if self.device.type != "cpu" or not (wanted == "int8" or cheap):
            return encoder
        from .int8 import Int8Encoder, can_be_int8, is_quicker

        return Int8Encoder(encoder) if can_be_int8(encoder) and (wanted == "int8" or is_quicker()) else encoder

    def labels_changed(self) -> None:
        """What is made of labels and prototypes follows them."""
        self.index = self.index.follow(vectors_of(self, self._share))
        self._other_indexes = {}
        self.voices = Voices(self)

    @property
    def device(self) -> torch.device:
        return self.prototypes_LD.device

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """h_QD of query texts, each of length 1."""
        if isinstance(texts, str):
            raise UserError('encode and predict take a list of texts; for one text write ["..."].')
        bf16 = wants_bf16(self.settings.training.precision, self.device)
        h_QD = self._reader.encode(texts, self.device, bf16=bf16)
        return as_float32(functional.normalize(h_QD, dim=1))

    def search(
        self, h_QD: FloatArray, top: int, filtered: csr_matrix | None = None, *, classifier: float = 0.0
    ) -> tuple[IdArray, FloatArray]:
        """Ids and scores of the nearest prototypes, best first; -1 where there are none. `classifier` is the share of
        its vectors in what is searched in their place: 1 searches them alone."""
        return self._index_of(classifier).search(torch.from_numpy(h_QD).to(self.device), top, filtered)

    def _index_of(self, share: float) -> Index:
        """`index` is of the model's usual mode; for others exact ones are made when they are first asked for."""
        share = 0.0 if self.classifier_LD is None else share
        if share == self._share:
            return self.index
        if share not in self._other_indexes:
            self._other_indexes[share] = ExactIndex(vectors_of(self, share), precision=self.settings.search.precision)
        return self._other_indexes[share]

    def rank(self, texts: Sequence[str], top: int, filtered: csr_matrix | None = None) -> tuple[IdArray, FloatArray]:
        """Ids and scores of each text's best labels, best first, without pairs that are filtered; -1 = no more."""
        weights, h_QD = self.weights, self.encode(texts)
        if self.device.type != "cpu" or self.index.backend != "exact":
            return self._rank(texts, h_QD, top, filtered, weights)
        pairs = None if filtered is None else csr_matrix(filtered)

        def answer(rows: slice) -> tuple[IdArray, FloatArray]:
            return self._rank(texts[rows], h_QD[rows], top, None if pairs is None else pairs[rows], weights)

        ids, scores = zip(*side_by_side(answer, len(h_QD)), strict=True)
        return np.concatenate(ids), np.concatenate(scores)

    def _rank(
        self, texts: Sequence[str], h_QD: FloatArray, top: int, filtered: csr_matrix | None, weights: Weights
    ) -> tuple[IdArray, FloatArray]:
        if not (weights.asks_memory or weights.asks_words):
            return self.search(h_QD, top, filtered, classifier=weights.classifier)
        ids_QC, cosine_QC = self.search(
            h_QD, max(top, self.settings.fusion.candidates), filtered, classifier=weights.classifier
        )
        heard = self.voices.hear(texts, h_QD, ids_QC, cosine_QC, weights)
        return best_of(ids_QC, self.voices.together(heard, weights), top)

    @property
    def weights(self) -> Weights:
        """How much each voice counts in the model's mode: "auto" is the one that was best on validation."""
        return (self.blend or Blend()).of(self.mode_in_use)

    @property
    def mode_in_use(self) -> str:
        """What "auto" stands for, or the mode that was named."""
        if self.mode not in ("auto", *MODES):
            raise UserError(f'search.mode is "auto" or one of {", ".join(MODES)}, not "{self.mode}".')
        mode = (self.blend or Blend()).named(self.mode)
        if mode in OF_CLASSIFIER and self.classifier_LD is None:
            raise UserError(
                f"this model has no classifier (W), which mode {mode} needs: train with classifier.enabled=true, "
                "or predict in another mode."
            )
        return mode

    @property
    def calibration(self) -> Calibration | None:
        """Of the mode in use: another mode's scores are others."""
        return self.calibrations.get(self.mode_in_use)

    def predict(
        self,
        texts: Sequence[str],
        top: int = 5,
        *,
        threshold: float | None = None,
        allowed: Iterable[str] | None = None,
        blocked: Iterable[str] = (),
        filtered: csr_matrix | None = None,
    ) -> list[list[Prediction]]:
        """For each text its best labels, best first; for a text without a word, none.

        Only labels with a score of at least `threshold`, of those `allowed` and not `blocked` (by uid or name), without
        the pairs in `filtered` (texts x labels).
        """
        selection = Selection(self, allowed=allowed, blocked=blocked, threshold=threshold)
        return selection.predict(texts, top, filtered)

    def prediction(self, label: int, score: float) -> Prediction:
        """One answer in full."""
        return Prediction(self.labels.names[label], self.labels.uids[label], label, score)

    def calibrated(self, scores_QK: FloatArray) -> npt.NDArray[np.float64]:
        """How likely each answer is right, given the scores of each query's answers, best first."""
        if self.calibration is not None:
            return self.calibration(scores_QK)
        if self.calibrations:
            raise UserError(
                f'this model has no probabilities in mode "{self.mode_in_use}": they were fitted for '
                f"{', '.join(self.calibrations)}; predict in one of these, or use its scores."
            )
        raise UserError(
            "this model has no calibrated probabilities: it was trained without validation, or by an older "
            "version; train it again with training.validate_every above 0, or use its scores."
        )

    def probabilities(self, predictions: Sequence[Sequence[Prediction]]) -> list[list[float]]:
        """How likely each answer of `predict` is right."""
        return [self.calibrated(_scores(row))[0].tolist() for row in predictions]

    def fingerprint(self) -> str:
        """The same for the same labels and prototypes, with near certainty another for any other."""
        every = max(1, len(self.labels) // 1000)
        digest = hashlib.blake2b(as_float32(self.prototypes_LD[::every]).tobytes(), digest_size=16)
        if self.classifier_LD is not None:
            digest.update(as_float32(self.classifier_LD[::every]).tobytes())
        digest.update(f"{len(self.labels)} {self.settings}".encode())
        return digest.hexdigest()

    def add_labels(
        self,
        texts: Sequence[str],
        uids: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        queries: Sequence[Sequence[str]] | None = None,
    ) -> list[str]:
        """New labels, to be predicted at once, without training; returns their uids.

        A prototype is made of the label's text, a free vector of its neighbours and, where `queries` holds some
        example queries for each label, their centroid. Uids and names are the texts unless they are given. Ids are
        rows: those of the new labels follow the others'. The old labels keep their scores.
        """
        from .label_changes import add_labels

        return add_labels(self, texts, uids, names, queries)

    def remove_labels(self, uids: Iterable[str]) -> None:
        """These labels are gone. Ids are rows: the labels behind them move up; uids stay what they are."""
        from .label_changes import remove_labels

        remove_labels(self, uids)

    def rename_labels(self, texts: Mapping[str, str], names: Mapping[str, str] | None = None) -> None:
        """New texts by uid, which are the names, too, unless `names` has others; the prototypes follow."""
        from .label_changes import rename_labels

        rename_labels(self, texts, names)

    def update_labels(self, queries: Mapping[str, Sequence[str]]) -> None:
        """More example queries by uid: each centroid becomes the mean of its old queries and these."""
        from .label_changes import update_labels

        update_labels(self, queries)

    def save(self, path: str | Path) -> None:
        """Writes the model directory; an old one at that place is replaced only when the new one is complete."""
        from .storage import save_model

        save_model(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> PrimeModel:
        """Reads a directory that `save` or `primexmc train` wrote, or "hf://owner/name" from the Hugging Face hub."""
        from .index import take_up_index
        from .storage import load_model

        model = load_model(Path(path), pick_device(device))
        take_up_index(model, Path(path))
        return model


def _scores(predictions: Sequence[Prediction]) -> FloatArray:
    return np.array([[answer.score for answer in predictions]], dtype=np.float32)
