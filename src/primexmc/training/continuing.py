"""Continuing: a training that begins with what a model has learned, on queries and labels as they now are."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from ..config import Settings, flatten, read_toml
from ..data.corpus import Corpus, Labels, Split
from ..data.texts import Texts
from ..errors import UserError
from ..model.encoder import TextEncoder
from ..model.model import PrimeModel
from ..model.new_prototypes import Neighbours, label_vectors
from ..own_code import allow_named
from ..presets import load_preset

FREE_OF_ENCODER = ("query_prefix", "label_prefix")
FREE_OF_PROTOTYPES = ("dropout", "drop_centroid", "drop_free_vector", "centroid_mode", "exact_centroids", "ema_decay")
SHARE = 0.25  # of the epochs that the model was given
FEWEST = 2


@dataclass(frozen=True)
class Start:
    """What a training begins with in place of an untrained encoder."""

    model: PrimeModel

    @classmethod
    def of(cls, model: PrimeModel | str | Path, values: Mapping[str, Any]) -> Start:
        """A model, or the directory of one, on the device that the values name."""
        if isinstance(model, PrimeModel):
            return cls(model)
        return cls(PrimeModel.load(model, str(dict(flatten(values)).get("training.device", "auto"))))

    @property
    def num_free_vectors(self) -> int:
        return len(self.model.network.free_vectors_FD)

    def encoder(self) -> TextEncoder:
        """One of its own: training must not change the model."""
        return copy.deepcopy(self.model.network.encoder).requires_grad_(True)

    def network_state(self, labels: Labels) -> dict[str, Tensor]:
        """All that was learned but the encoder; known labels keep their free vectors, new ones borrow one."""
        state = {
            name: value
            for name, value in self.model.network.state_dict().items()
            if not name.startswith("encoder.") and name != "free_vector_of_L"
        }
        return state | {"free_vector_of_L": self._free_vectors(labels)}

    def _free_vectors(self, labels: Labels) -> Tensor:
        row_of = {uid: row for row, uid in enumerate(self.model.labels.uids)}
        row_L = torch.tensor([row_of.get(uid, -1) for uid in labels.uids], dtype=torch.int64)
        vector_of_L = self.model.network.free_vector_of_L.cpu()[row_L.clamp(min=0)]
        new = (row_L < 0).nonzero()[:, 0]
        if len(new):
            h_MD = label_vectors(self.model, Texts.of(labels.texts).take(new.numpy()))
            vector_of_L[new] = Neighbours(self.model).free_vectors(h_MD).cpu()
        return vector_of_L

    def story(self, labels: Labels) -> str:
        """Which labels stay, come and go."""
        old, now = set(self.model.labels.uids), set(labels.uids)
        told = f"continues a model: {len(old & now):,} of its labels stay, {len(now - old):,} are new"
        gone = len(old - now)
        hint = "; training.replay=true keeps these and their queries" if gone else ""
        return f"{told}, {gone:,} are not in the data and are dropped{hint}."


def continued(
    model: PrimeModel, corpus: Corpus, preset: str | None, config: Path | None, values: Mapping[str, Any]
) -> tuple[Corpus, Settings, dict[str, Any]]:
    """What to train on, with which settings, and which of those were derived.

    Settings are the model's unless preset, file or values name them. Epochs that nobody names are a quarter of the
    model's, or the share of the training queries that it does not remember where that is more; at least two.
    """
    settings, named = continued_settings(model.settings, preset, config, values)
    if settings.training.replay:
        corpus = with_memory(corpus, model)
    derived: dict[str, Any] = {}
    if "training.epochs" not in named:
        share = max(SHARE, _share_of_new(model, corpus.split("train")))
        derived["training.epochs"] = max(FEWEST, math.ceil(share * model.settings.training.epochs))
    return corpus, settings.with_values(derived, "derived settings"), derived


def continued_settings(
    settings: Settings, preset: str | None, config: Path | None, values: Mapping[str, Any]
) -> tuple[Settings, set[str]]:
    """A model's settings with what is named laid over them, and what is; the shape of what was learned must stay."""
    layers: list[tuple[Mapping[str, Any], str]] = [(values, "settings")]
    if config is not None:
        layers.insert(0, (read_toml(config), str(config)))
    if preset is not None:
        layers.insert(0, (load_preset(preset), f"preset {preset}"))
    new = settings
    for layer, source in layers:
        allow_named(dict(flatten(layer)))
        new = new.with_values(layer, source)
    for section, free in (("encoder", FREE_OF_ENCODER), ("prototypes", FREE_OF_PROTOTYPES)):
        before, now = (dataclasses.asdict(getattr(which, section)) for which in (settings, new))
        for name, value in before.items():
            if now[name] != value and name not in free:
                raise UserError(
                    f"{section}.{name} is {value} in the model that is to be continued, not {now[name]}; "
                    "leave it as it is, or train without --from."
                )
    return new, {key for layer, _ in layers for key, _ in flatten(layer)}


def with_memory(corpus: Corpus, model: PrimeModel) -> Corpus:
    """The corpus and the queries that the model remembers; a text that is in both has the corpus' labels."""
    memory = model.memory
    if memory is None:
        raise UserError("training.replay: the model that is to be continued remembers no queries; train on all data.")
    old, now = model.labels, corpus.labels
    row_of = {uid: row for row, uid in enumerate(now.uids)}
    new_id_L = np.array([row_of.setdefault(uid, len(row_of)) for uid in old.uids], dtype=np.int64)
    missing = np.flatnonzero(new_id_L >= len(now))
    labels = Labels(*(
        Texts.of(mine).joined(Texts.of(others).take(missing))
        for mine, others in ((now.uids, old.uids), (now.names, old.names), (now.texts, old.texts))
    ))  # fmt: skip
    splits = {
        name: None if split is None else _widened(split, len(labels))
        for name, split in (("train", corpus.train), ("val", corpus.val), ("test", corpus.test))
    }
    there = {text for split in splits.values() if split is not None for text in split.texts}
    rows = np.array([row for row, text in enumerate(memory.texts) if text not in there], dtype=np.int64)
    pairs = memory.positives[rows]
    positives = csr_matrix((pairs.data, new_id_L[pairs.indices], pairs.indptr), shape=(len(rows), len(labels)))
    positives.sort_indices()
    uids = Texts.of(f"remembered {row}" for row in rows.tolist())
    remembered = Split(memory.texts.take(rows), positives, uids)
    train = splits["train"]
    assert train is not None
    return Corpus(corpus.name, labels, train.joined(remembered), splits["val"], splits["test"])


def _widened(split: Split, num_labels: int) -> Split:
    def wide(matrix: csr_matrix) -> csr_matrix:
        return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], num_labels))

    filtered = None if split.filtered is None else wide(split.filtered)
    return dataclasses.replace(split, positives=wide(split.positives), filtered=filtered)


def _share_of_new(model: PrimeModel, train: Split) -> float:
    """0 where the model has no memory to tell."""
    if model.memory is None or len(train) == 0:
        return 0.0
    known = set(model.memory.texts)
    return sum(text not in known for text in train.texts) / len(train)
