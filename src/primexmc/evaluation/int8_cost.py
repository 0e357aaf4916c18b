"""What predicting in 8-bit whole numbers costs, measured on held-out queries."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch.nn import functional

from ..data.corpus import Split
from ..model.encode import TextReader, as_float32
from ..model.int8 import Int8Encoder, can_be_int8
from ..model.model import PrimeModel
from .calibrate import right_answers

MOST_QUERIES = 2000


def int8_cost(model: PrimeModel, held_out: Split) -> float | None:
    """Points of P@1 by the nearest prototype that are lost (below 0: won); None where the encoder cannot do it."""
    encoder = model.network.encoder
    if not can_be_int8(encoder) or not len(held_out):
        return None
    rows, settings, cpu = slice(0, MOST_QUERIES), model.settings, torch.device("cpu")
    rounded = Int8Encoder(encoder if model.device == cpu else copy.deepcopy(encoder).cpu())
    precise = TextReader(encoder, settings.data.query_tokens, settings.encoder.query_prefix)
    quick = TextReader(rounded, settings.data.query_tokens, settings.encoder.query_prefix)
    texts, positives = held_out.texts[rows], held_out.positives[rows]
    right = []
    for reader, device in ((precise, model.device), (quick, cpu)):
        h_QD = as_float32(functional.normalize(reader.encode(texts, device, bf16=False), dim=1))
        ids_Q1, _ = model.search(h_QD, 1, None if held_out.filtered is None else held_out.filtered[rows])
        right.append(np.mean(right_answers(ids_Q1, positives)))
    return round(100 * float(right[0] - right[1]), 3)
