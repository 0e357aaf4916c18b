"""train(): a corpus in, a model out. Choose the number of epochs on validation, refit where asked, finish exactly."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..config import Settings
from ..data.corpus import Corpus, Split
from ..data.texts import Texts
from ..model.encode import pick_device, wants_bf16
from ..model.encoder import load_encoder
from ..model.memory import Memory
from ..model.mixture import NO_MIXTURE
from ..model.model import PrimeModel
from .begin import begin_from, begin_state, blank_state
from .continuing import Start, continued
from .data import prepare, usable_queries
from .decide import as_decided, decide
from .finish import exact_prototypes
from .fit_classifier import fit_classifier
from .log import Log
from .loop import run_phase
from .phase import Phase
from .place import check_place, holds_model, nothing_left_behind
from .resolve import resolve
from .saver import Saver
from .state import TrainingState
from .validate import Validator

# These may differ between a run and its continuation.
FREE_ON_RESUME = ("training.device", "training.threads", "training.checkpoint_every_s")


def train(
    corpus: Corpus,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    config: str | Path | None = None,
    from_model: PrimeModel | str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> PrimeModel:
    """Trains PRIME on `corpus.train`; with `out` the model is saved there, with checkpoints on the way.

    `settings` are single values like `{"training.epochs": 3}` and win over `config` (a TOML file), which wins over the
    preset. What none of them names is derived from the data and the hardware. With `from_model` training goes on with
    what that model has learned, and its settings stand where a preset would.
    """
    corpus.split("train")
    file, start = None if config is None else Path(config), None
    if from_model is None:
        chosen, derived = resolve(corpus, preset, file, settings or {})
    else:
        start = Start.of(from_model, settings or {})
        corpus, chosen, derived = continued(start.model, corpus, preset, file, settings or {})
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "model" if out is None else Path(out)
        run = _Run(corpus, chosen, derived, start, place, keep=out is not None, quiet=quiet)
        return run.run(resume, overwrite)


class _Run:
    """One call of `train`: its settings, its place on disk and its log."""

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        derived: dict[str, Any],
        start: Start | None,
        place: Path,
        *,
        keep: bool,
        quiet: bool,
    ) -> None:
        self.full, self.start = corpus, start
        self.corpus = _with_validation(corpus, settings)
        self.settings, self.derived, self.place, self.keep, self.quiet = settings, derived, place, keep, quiet
        self.device = pick_device(settings.training.device)
        self.bf16 = wants_bf16(settings.training.precision, self.device)
        self.started = time.perf_counter()

    def run(self, resume: bool, overwrite: bool) -> PrimeModel:
        if self.settings.training.threads:
            torch.set_num_threads(self.settings.training.threads)
        began_with = None if self.start is None else self.start.model.fingerprint()
        identity = {"settings": self._identity(), "corpus": fingerprint(self.full), "from": began_with}
        self.saver = Saver(self.place, identity, self.settings.training.checkpoint_every_s, enabled=self.keep)
        if self.keep:
            check_place(self.place, resume=resume, overwrite=overwrite)
        with nothing_left_behind(self.place):
            return self._run_saving(resume, overwrite)

    def _run_saving(self, resume: bool, overwrite: bool) -> PrimeModel:
        self.saver.open(resume=resume, overwrite=overwrite)
        with Log(self.place / "metrics.jsonl", quiet=self.quiet) as log, self.saver.catching_interrupts():
            self.log = log
            self._introduce(resume)
            return self._run_phases()

    def _run_phases(self) -> PrimeModel:
        """One phase without validation; else one that chooses, and where the settings say so the refit."""
        settings, corpus = self.settings, self.corpus
        train, epochs = corpus.split("train"), settings.training.epochs
        if corpus.val is None:
            if settings.training.refit:
                self.log.say("training.refit: nothing is held out for validation, so there is nothing to refit on.")
            phase, state = self._phase("all", train, epochs)
            return self._kept(self._model(phase, state, {}))
        chosen = self.saver.facts.get("chosen")
        if chosen is None:
            phase, state = self._phase("choose", train, epochs)
            chosen = {"epoch": state.best.epoch, "scores": state.best.scores}
            state.network.load_state_dict(state.best.network)
            model = self._model(phase, state, chosen)
            decided = decide(model, phase.data, corpus.val)
            self._say_blend(model)
            if not settings.training.refit:
                return self._kept(self._with_held_out(phase, state, chosen | decided))
            self.saver.facts["chosen"] = chosen = chosen | decided
            del phase, state, model  # the memory is needed for the refit
        self.log.say(f"Epoch {chosen['epoch']} was best on validation; training again on train + validation.")
        everything = self.full.without_validation().split("train")
        phase, state = self._phase("refit", everything, chosen["epoch"])
        model = self._model(phase, state, chosen)
        as_decided(model, phase.data, chosen)
        return self._kept(model)

    def _with_held_out(self, phase: Phase, state: TrainingState, chosen: dict[str, Any]) -> PrimeModel:
        """The same network; its centroids, memory and words now know of the queries that were held out, too."""
        everything = prepare(
            self.full, self.full.without_validation().split("train"), state.network.encoder, self.settings
        )
        model = self._model(dataclasses.replace(phase, data=everything), state, chosen)
        model.facts["trained_on_queries"] = phase.data.num_queries
        as_decided(model, everything, chosen)
        return model

    def _say_blend(self, model: PrimeModel) -> None:
        if model.blend is None:
            return
        best, weights = model.blend.best, model.blend.of(model.blend.best)
        judged = ", with a judge" if weights.judge is not None else ""
        told = f"memory weighs {weights.memory:g}, words {weights.lexical:g}"
        if model.classifier_LD is not None:
            told += f", W's share is {weights.classifier:g}"
        self.log.say(f"Best on validation: mode {best} ({told}{judged}).")
        if model.mixture != NO_MIXTURE:
            text, centroid = model.mixture
            self.log.say(f"In the prototypes label texts weigh {text:g}, centroids {centroid:g} (the network's 1).")

    def _phase(self, name: Any, split: Split, last_epoch: int) -> tuple[Phase, TrainingState]:
        """Trains one phase, from a checkpoint of it where there is one."""
        settings = self.settings
        torch.manual_seed(settings.training.seed)
        start = self.start
        encoder = (load_encoder(settings.encoder) if start is None else start.encoder()).to(self.device)
        data = prepare(self.full, split, encoder, settings)
        phase = Phase(name, settings, data, last_epoch, self.bf16)
        saved = self.saver.take(name)
        if saved is None and start is None:
            state = begin_state(phase, encoder, self.device)
        elif saved is None and start is not None:
            state = begin_from(phase, encoder, start.network_state(self.full.labels), self.device)
        else:
            assert saved is not None
            state = blank_state(phase, encoder, self.device, None if start is None else start.num_free_vectors)
            state.restore(saved.tensors, saved.numbers)
        validator = None
        if name == "choose":
            validator = Validator(phase, self.corpus.split("val"), self.full.split("train"))
        run_phase(phase, state, self.log, validator, lambda: self.saver.save_if_due(name, state))
        if settings.classifier.enabled:
            self.saver.save_now(name, state)  # whatever stops the classifier's training, it begins here again
        return phase, state

    def _model(self, phase: Phase, state: TrainingState, chosen: dict[str, Any]) -> PrimeModel:
        """The exact pass, and what it makes of the state."""
        full = self._all_training_queries()
        seen: list[torch.Tensor] = []
        prototypes_LD, centroids = exact_prototypes(
            state.network,
            phase.data,
            self.device,
            self.bf16,
            kept=state.centroids,
            see=lambda h_BD: seen.append(h_BD.half().cpu()),
        )
        model = PrimeModel(
            settings=self.settings,
            labels=self.full.labels,
            label_counts_L=np.bincount(full.positives.indices, minlength=len(self.full.labels)).astype(np.int64),
            num_train_queries=len(full),
            network=state.network,
            prototypes_LD=prototypes_LD,
            centroids=centroids,
            memory=Memory(torch.cat(seen), phase.data.positives, phase.data.query_texts),
            facts={
                "corpus": self.full.name,
                "trained_on_queries": phase.data.num_queries,
                "epochs": phase.last_epoch if phase.name == "refit" else chosen.get("epoch", phase.last_epoch),
                "validation": chosen.get("scores", {}),
            },
        )
        if self.settings.classifier.enabled and model.memory is not None:
            tell = functools.partial(self.log.classifier, phase.name)
            model.classifier_LD = fit_classifier(
                model, model.memory, phase.data.filtered, tell=tell, pause=self.saver.stop_if_asked
            )
        return model

    def _kept(self, model: PrimeModel) -> PrimeModel:
        """The finished model, in its place."""
        model.facts["train_s"] = round(self.saver.seconds_before + time.perf_counter() - self.started, 1)
        if self.keep:
            model.save(self.place)
        return model

    def _all_training_queries(self) -> Split:
        return self.full.split("train")

    def _identity(self) -> dict[str, Any]:
        values = self.settings.to_dict()
        for key in FREE_ON_RESUME:
            section, name = key.split(".")
            del values[section][name]
        return values

    def _introduce(self, resume: bool) -> None:
        train, labels = self.full.split("train"), len(self.full.labels)
        held_out = "" if self.corpus.val is None else f", {len(self.corpus.val):,} held out for validation"
        self.log.say(
            f"{self.full.name}: {len(train):,} training queries, {labels:,} labels{held_out}; on {self.device}"
        )
        if self.start is not None:
            self.log.say(self.start.story(self.full.labels))
        if self.derived:
            shown = "  ".join(f"{key}={value}" for key, value in self.derived.items())
            self.log.say(f"derived from data and hardware: {shown}")
        if holds_model(self.place):
            self.log.say(f"{self.place}: the model that is there is replaced when the new one is complete.")
        if resume and self.saver.nothing_to_resume:
            self.log.say(f"{self.place}: no checkpoint to resume; training starts afresh.")


def _with_validation(corpus: Corpus, settings: Settings) -> Corpus:
    """Without a validation split where none is wanted, where it has no label to find, or where it would take all."""
    divided = corpus.with_validation(settings.data)
    useless = divided.val is None or divided.val.positives.nnz == 0 or len(usable_queries(divided.split("train"))) == 0
    return dataclasses.replace(corpus, val=None) if useless or settings.training.validate_every == 0 else divided


def fingerprint(corpus: Corpus) -> str:
    """The same for the same training data; a resumed run must not meet other data."""
    digest = hashlib.blake2b(digest_size=16)
    for split in (corpus.train, corpus.val):
        if split is not None:
            digest.update(repr(split.positives.shape).encode())
            for pairs in (split.positives, split.filtered):
                for indices in () if pairs is None else (pairs.indptr, pairs.indices):
                    digest.update(np.ascontiguousarray(indices, dtype=np.int64).data)
    for texts in (corpus.labels.texts, *(split.texts for split in (corpus.train, corpus.val) if split is not None)):
        compact = Texts.of(texts)
        digest.update(np.ascontiguousarray(compact.offsets, dtype=np.int64).data)
        digest.update(np.ascontiguousarray(compact.blob).data)
    return digest.hexdigest()
