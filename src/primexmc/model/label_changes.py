"""Labels that come and go: they get prototypes at once, without training.

A label's id is its row: new labels come last, and where one is removed those behind it move up. Uids stay.
Shapes: M labels that are new or changed, L labels, D dimensions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..data.corpus import Labels
from ..errors import UserError
from .examples import Examples, merged
from .label_checks import checked_queries, checked_texts, new_uids, rows_of
from .memory_changes import with_queries, without_labels
from .per_label import IdArray, PerLabel
from .prototypes_again import with_prototypes

if TYPE_CHECKING:
    from .model import PrimeModel


def add_labels(
    model: PrimeModel,
    texts: Sequence[str],
    uids: Sequence[str] | None,
    names: Sequence[str] | None,
    queries: Sequence[Sequence[str]] | None,
) -> list[str]:
    """`PrimeModel.add_labels`."""
    texts = checked_texts(texts, "texts")
    uids = new_uids(texts if uids is None else uids, model.labels.uids, len(texts))
    names = texts if names is None else checked_texts(names, "names", len(texts))
    examples = _examples(model, [()] * len(texts) if queries is None else queries, uids)
    if not texts:
        return uids
    untrained_M = torch.zeros(len(texts), dtype=torch.bool, device=model.device)
    new = PerLabel(
        labels=Labels(uids, names, texts),
        label_counts_L=examples.counts_M,
        free_vector_of_L=untrained_M.long(),
        centroids=examples.centroids(model.device),
        prototypes_LD=model.prototypes_LD[:0],
        trained_L=untrained_M,
    )
    new = with_prototypes(model, new)
    rows_M = len(model.labels) + np.arange(len(texts))
    old_of_new = np.concatenate([np.arange(len(model.labels)), np.full(len(texts), -1)])
    PerLabel.of(model).joined(new).put(model)
    model.lexical = model.lexical and model.lexical.with_labels(old_of_new).with_texts(rows_M, texts)
    _remember(model, examples, rows_M)
    return uids


def remove_labels(model: PrimeModel, uids: Iterable[str]) -> None:
    """`PrimeModel.remove_labels`."""
    gone_M = rows_of(uids, model.labels.uids)
    kept = np.setdiff1d(np.arange(len(model.labels)), gone_M)
    if len(kept) == 0:
        raise UserError("these are all labels; a model keeps at least one.")
    memory = model.memory
    PerLabel.of(model).take(kept).put(model)
    model.memory = None if memory is None else without_labels(memory, kept)
    model.lexical = model.lexical and model.lexical.with_labels(kept)


def rename_labels(model: PrimeModel, texts: Mapping[str, str], names: Mapping[str, str] | None) -> None:
    """`PrimeModel.rename_labels`."""
    new_texts = checked_texts(list(texts.values()), "texts")
    rows_M = rows_of(texts, model.labels.uids)
    new_names = [(names or {}).get(uid, text) for uid, text in texts.items()]
    old = PerLabel.of(model).take(rows_M)
    _put_again(model, rows_M, dataclasses.replace(old, labels=Labels(list(texts), new_names, new_texts)))
    untaught = (~old.trained_L).cpu().numpy().nonzero()[0]
    if model.lexical is not None and len(untaught):
        model.lexical = model.lexical.with_texts(rows_M[untaught], [new_texts[at] for at in untaught.tolist()])


def update_labels(model: PrimeModel, queries: Mapping[str, Sequence[str]]) -> None:
    """`PrimeModel.update_labels`."""
    rows_M = rows_of(queries, model.labels.uids)
    examples = _examples(model, list(queries.values()), list(queries))
    if model.memory is not None:
        examples = examples.not_in(model.memory, rows_M)
    old = PerLabel.of(model).take(rows_M)
    _check_use(model, examples, old.trained_L)
    new = dataclasses.replace(
        old,
        label_counts_L=old.label_counts_L + examples.counts_M,
        centroids=merged(old.centroids, examples.centroids(model.device)),
    )
    _put_again(model, rows_M, new)
    _remember(model, examples, rows_M)


def _put_again(model: PrimeModel, rows_M: IdArray, new: PerLabel) -> None:
    """Some labels with their prototypes made again; the others keep every bit."""
    if len(rows_M):
        PerLabel.of(model).replaced(rows_M, with_prototypes(model, new, rows_M)).put(model)


def _examples(model: PrimeModel, queries: Sequence[Sequence[str]], uids: Sequence[str]) -> Examples:
    return Examples.of(model, checked_queries(queries, uids))


def _check_use(model: PrimeModel, examples: Examples, trained_M: Tensor) -> None:
    """Text and examples are all that an added label has; a trained one needs a place for them."""
    settings = model.settings.prototypes
    if model.memory is None and not (settings.enabled and settings.centroid) and examples.texts and trained_M.any():
        raise UserError("this model has neither centroids nor a memory, so example queries would change nothing.")


def _remember(model: PrimeModel, examples: Examples, rows_M: IdArray) -> None:
    """Also without examples: the memory's labels are the model's."""
    if model.memory is not None:
        positives_QL = examples.among(rows_M, len(model.labels))
        known = len(model.memory)
        model.memory = with_queries(model.memory, examples.texts, examples.h_QD, positives_QL)
        model.num_train_queries += len(model.memory) - known
    else:
        model.num_train_queries += len(examples.texts)
