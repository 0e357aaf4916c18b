"""Validation during training: exact prototypes as they would be now, and the metrics of the held-out queries."""

from __future__ import annotations

import numpy as np
from torch.nn import functional

from ..data.corpus import Split
from ..data.propensity import inverse_propensity
from ..data.tokens import tokenise
from ..evaluation.metrics import RankingMetrics
from ..model.encode import encode_tokens
from ..retrieval.exact import ExactIndex
from .finish import exact_prototypes
from .phase import Phase
from .state import TrainingState

TOP = 100  # whatever is searched later: the log shows R@100


class Validator:
    """Called with the state it gives scores in percent. Propensities come from the full training data."""

    def __init__(self, phase: Phase, val: Split, full_train: Split) -> None:
        settings, encoder_settings = phase.settings, phase.settings.encoder
        counts_L = np.bincount(full_train.positives.indices, minlength=full_train.positives.shape[1])
        data = settings.data
        self.weights_L = inverse_propensity(counts_L, len(full_train), data.propensity_a, data.propensity_b)
        self.phase, self.val, self.prefix = phase, val, encoder_settings.query_prefix

    def __call__(self, state: TrainingState) -> dict[str, float]:
        phase, device, encoder = self.phase, state.device, state.network.encoder
        prototypes_LD, _ = exact_prototypes(state.network, phase.data, device, phase.bf16, kept=state.centroids)
        index, metrics, start = ExactIndex(prototypes_LD), RankingMetrics(self.weights_L), 0
        tokens = tokenise(
            self.val.texts,
            encoder.tokenizer,
            phase.settings.data.query_tokens,
            prefix=self.prefix,
            add_special_tokens=encoder.add_special_tokens,
        )
        for h_BD in encode_tokens(encoder, tokens, device, bf16=phase.bf16):
            rows = slice(start, start + len(h_BD))
            filtered = None if self.val.filtered is None else self.val.filtered[rows]
            ids_BK, _ = index.search(functional.normalize(h_BD, dim=1), TOP, filtered)
            metrics.update(ids_BK, self.val.positives[rows])
            start += len(h_BD)
        return metrics.result()
