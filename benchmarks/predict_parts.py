"""What a batch's prediction is made of, each part alone on what the parts before it found; for predict_speed.py.

Whatever voices a model has are asked, with the weights of its own mode "all"; a part that it lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from primexmc.fusion.candidates import best_of
from primexmc.model.model import PrimeModel
from primexmc.retrieval.exact import ExactIndex


def parts(model: PrimeModel, texts: Sequence[str], top: int) -> dict[str, Callable[[], object]]:
    """What each part is called, and what runs it once."""
    model.mode = "all"
    weights, votes, lexical = model.weights, model.voices.votes, model.lexical
    num_candidates, h_QD = max(top, model.settings.fusion.candidates), model.encode(texts)
    ids_QC, cosine_QC = model.search(h_QD, num_candidates, classifier=weights.classifier)
    found: dict[str, Callable[[], object]] = {
        "tokenise": lambda: model._reader.cutter.encode(list(texts)),
        "tokenise and encode": lambda: model.encode(texts),
        "search prototypes": lambda: model.search(h_QD, num_candidates, classifier=weights.classifier),
    }
    if isinstance(model.index, ExactIndex):
        found["its int8 products"] = products(model.index, h_QD)
    if votes is not None:
        near = votes.neighbours(h_QD)
        found["search memory"] = lambda: votes.neighbours(h_QD)
        found["its int8 products "] = products(votes.index, h_QD)
        found["votes"] = lambda: votes.scores(near, ids_QC, weights.temperature)
    if lexical is not None:
        found["find words"] = lambda: lexical.tfidf.vectors(texts)
        found["find and weigh words"] = lambda: lexical.scores(texts, ids_QC)
    heard = model.voices.hear(texts, h_QD, ids_QC, cosine_QC, weights)
    found["add up and sort"] = lambda: best_of(ids_QC, model.voices.together(heard, weights), top)
    found["predict, with names"] = lambda: model.predict(texts, top)
    return found


def products(index: ExactIndex, h_QD: object) -> Callable[[], object]:
    """The least that an exact search in 8 bits can take; in blocks as the search makes them, thrown away at once."""
    from primexmc.retrieval.codes import Codes

    codes = Codes.of(index.z_LD, "int8")
    queries = codes.of_queries(torch.as_tensor(h_QD))
    width = min(8192, len(codes.codes_LD))

    def run() -> None:
        for row in range(0, len(queries.codes_BD), 256):
            codes_BD = queries.codes_BD[row : row + 256]
            for start in range(0, len(codes.codes_LD), width):
                torch._int_mm(codes_BD, codes.codes_LD[start : start + width].T)

    return run
