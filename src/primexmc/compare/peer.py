"""Peers: other people's programs, each under its own Python, on the same texts and judged by the same measures."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..evaluation.evaluate import score
from . import peer_files
from .measure import samples_from
from .task import NO_MODE, Outcome, Plan, Task

SCRIPTS, ENVIRONMENTS = Path("benchmarks") / "peers", Path(".peers")


@dataclass(frozen=True)
class Peer:
    """A method that a peer's program runs, told by its file."""

    name: str
    peer: str  # which program: benchmarks/peers/<peer>_peer.py under .peers/<peer>/bin/python
    reads: str  # "features" or "texts"
    label_rows: bool
    settings: Mapping[str, Any]
    seeded: bool
    modes: tuple[str, ...] = (NO_MODE,)

    @classmethod
    def from_file(cls, name: str, content: Mapping[str, Any]) -> Peer:
        settings = content.get("settings", {})
        return cls(name, content["peer"], content["reads"], content["label_rows"], settings, content["seeded"])

    def plan(self, task: Task) -> Plan:
        settings = {**self.settings, **task.judging}
        if self.reads == "features":
            settings |= {"features": "tf-idf of words", "label_rows": self.label_rows}
        return Plan(settings=settings, text_len="whole")

    def check(self, task: Task) -> None:
        self._commands(task)

    def run(self, task: Task, modes: Sequence[str]) -> Outcome:
        """Writes the files, runs the program, reads its answer."""
        corpus, queries, top = task.corpus, task.corpus.split("test"), task.settings.search.top
        shutil.rmtree(task.place, ignore_errors=True)
        task.place.mkdir(parents=True)
        started = time.perf_counter()
        if self.reads == "features":
            peer_files.write_features(task.place, corpus, label_rows=self.label_rows)
        else:
            peer_files.write_texts(task.place, corpus)
        features_s = time.perf_counter() - started
        peer_files.write_task(
            task.place,
            top=min(peer_files.candidates_wanted(queries, top), len(corpus.labels)),
            threads=task.settings.training.threads or len(os.sched_getaffinity(0)),
            seed=task.seed,
            settings=self.settings,
        )
        self._call(task)
        candidates, answer = peer_files.read_answer(task.place, corpus, self.name)
        pred_ids = peer_files.without_filtered(candidates, queries, top)
        scores = score(pred_ids, queries, corpus.split("train"), task.settings.data)
        more = {"predict_s": round(answer["predict_s"], 1), "peer": answer["version"], "device": "cpu"}
        samples = {NO_MODE: samples_from(pred_ids, corpus)}
        return Outcome(scores={NO_MODE: scores}, train_s=features_s + answer["train_s"], more=more, samples=samples)

    def _call(self, task: Task) -> None:
        python, script = self._commands(task)
        log = task.place / "peer.log"
        with log.open("wb") as output:
            done = subprocess.run(
                [python, script, task.place], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        if done.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise UserError(f"{self.name}: {self.peer} failed ({lines[-1] if lines else 'no word'}); see {log}.")

    def _commands(self, task: Task) -> tuple[Path, Path]:
        """The peer's Python and our script for it."""
        if task.checkout is None:
            raise UserError(f"{self.name}: peers run from a checkout of primexmc's repository; run `make peers` there.")
        script = task.checkout / SCRIPTS / f"{self.peer}_peer.py"
        python = task.checkout / ENVIRONMENTS / self.peer / "bin" / "python"
        if not python.exists() or not script.exists():
            raise UserError(f"{self.name}: {python} is not there; run `make peers` in {task.checkout} first.")
        return python, script


def find_checkout() -> Path | None:
    """The repository that this package runs from, if it runs from one."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / SCRIPTS).is_dir() else None
