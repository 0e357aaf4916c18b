"""How much of label texts and centroids goes into the finished prototypes: what gives the best nDCG@5 on held-out
queries, nothing included.

Shapes: Q queries, L labels, C candidates, D dimensions.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..data.corpus import Split
from ..data.tokens import RaggedTokens
from ..evaluation.calibrate import right_answers
from ..model.encode import as_float32, encode_tokens, wants_bf16
from ..model.mixture import NO_MIXTURE, Mixture
from ..model.model import PrimeModel
from ..retrieval.exact import ExactIndex
from .ndcg import Ndcg

TEXTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0, 1.5)
CENTROIDS = (0.0, 0.25, 0.5)
NEAREST = 60  # of each kind of vector: what is among the best by a sum is nearly always among these by a part
MOST_QUERIES = 2000


def mix(model: PrimeModel, label_tokens: RaggedTokens, held_out: Split) -> None:
    """Puts the mixture of the best weights in the place of the model's prototypes."""
    if model.settings.prototypes.mixed and model.network.label_prototypes is not None:
        h_LD = _label_vectors(model, label_tokens)
        _put(model, best_mixture(model, h_LD, held_out.take(np.arange(min(len(held_out), MOST_QUERIES)))), h_LD)


def mix_as(model: PrimeModel, label_tokens: RaggedTokens, mixture: Mixture) -> None:
    """The same for a model that has seen all queries, with weights that are known."""
    if mixture != NO_MIXTURE:
        _put(model, mixture, _label_vectors(model, label_tokens))


def _put(model: PrimeModel, mixture: Mixture, h_LD: Tensor) -> None:
    z_LD, w_LD = model.prototypes_LD, model.classifier_LD
    model.mixture, model.prototypes_LD = mixture, mixture.of(z_LD, h_LD, model.centroids.c_LD)
    if w_LD is not None:  # a label that had no query to learn from has its prototype there
        kept_L1 = (w_LD == z_LD).all(dim=1, keepdim=True)
        model.classifier_LD = torch.where(kept_L1, functional.normalize(model.prototypes_LD, dim=1), w_LD)
    model.labels_changed()


def _label_vectors(model: PrimeModel, label_tokens: RaggedTokens) -> Tensor:
    bf16 = wants_bf16(model.settings.training.precision, model.device)
    return torch.cat(list(encode_tokens(model.network.encoder, label_tokens, model.device, bf16=bf16)))


def best_mixture(model: PrimeModel, h_LD: Tensor, queries: Split) -> Mixture:
    """Of equals the one with less of text, then of centroids. `h_LD` are the label texts' vectors, of any length."""
    z_LD, q_QD = model.prototypes_LD, model.encode(queries.texts)
    text_LD, centroid_LD = (functional.normalize(x_LD.to(z_LD), dim=1) for x_LD in (h_LD, model.centroids.c_LD))
    parts = (z_LD, text_LD, centroid_LD)
    found = [ExactIndex(part_LD).search(q_QD, NEAREST, queries.filtered)[0] for part_LD in parts]
    ids_QC = _each_once(np.concatenate(found, axis=1))
    cosines = [_products(part_LD, q_QD, ids_QC) for part_LD in parts]
    ndcg, right_QC = Ndcg(queries.positives), right_answers(ids_QC, queries.positives)
    there_QC = ids_QC >= 0

    def score(mixture: Mixture) -> float:
        sum_QC = cosines[0] + mixture.text * cosines[1] + mixture.centroid * cosines[2]
        return ndcg.of_scores(np.where(there_QC, sum_QC, -np.inf), right_QC)

    return max(itertools.starmap(Mixture, itertools.product(TEXTS, CENTROIDS)), key=score)


def _each_once(ids_QC: np.ndarray) -> np.ndarray:
    """Each row's ids by rising id, what comes again is -1."""
    ids_QC = np.sort(ids_QC, axis=1)
    ids_QC[:, 1:][ids_QC[:, 1:] == ids_QC[:, :-1]] = -1
    return ids_QC


def _products(part_LD: Tensor, q_QD: np.ndarray, ids_QC: np.ndarray) -> np.ndarray:
    """Of each query with its own candidates."""
    q = torch.from_numpy(q_QD).to(part_LD)
    ids = torch.from_numpy(np.maximum(ids_QC, 0)).to(part_LD.device)
    rows = range(0, len(q), 256)
    return np.concatenate(
        [as_float32(torch.bmm(part_LD[ids[at : at + 256]], q[at : at + 256, :, None])[:, :, 0]) for at in rows]
    )
