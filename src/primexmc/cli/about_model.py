"""A model's description, for `primexmc info`; its tensors stay where they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..config import Settings
from ..model.calibration import default_mode, read_calibrations
from ..model.description import CLASSIFIER, DESCRIPTION, read_description
from ..retrieval.description import DIRECTORY, UnusableIndex, read_index_description

LIBRARIES = {True: 0.25e9, False: 0.4e9}  # main memory of Python with torch, for the static encoder or another
CODED_FROM = 2**23  # numbers in the prototypes: with so many, a search keeps them in 8 bits, too
EXACT_BELOW = 200_000  # retrieval.kept's, named here without importing torch
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "R@100")


def model_facts(path: Path) -> dict[str, Any]:
    """What stands in the directory."""
    description = read_description(path)
    settings = Settings.from_dict(description["settings"], str(path / DESCRIPTION))
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    numbers = description["num_labels"] * description["dim"]
    codes = numbers if numbers >= CODED_FROM else 0
    has_classifier = (path / CLASSIFIER).is_file()
    mixed = 4 * numbers * has_classifier  # prototypes and classifier, added up for a search
    return {
        "model": str(path),
        "labels": description["num_labels"],
        "dimensions": description["dim"],
        "train_queries": description["num_train_queries"],
        "encoder": settings.encoder.name,
        **description["facts"],
        "mode": default_mode(description),
        "classifier": dataclasses.asdict(settings.classifier) if has_classifier else None,
        "mixture": description.get("mixture") or [0.0, 0.0],
        "judge": _has_judge(description),
        "calibration": _calibration_facts(description),
        "index": _index_facts(path),
        "bytes": size,
        "predict_gib": round((size + mixed + codes + LIBRARIES[settings.encoder.name == "static"]) / 2**30, 2),
        "settings": settings.unlike_defaults(),
    }


def model_text(facts: dict[str, Any]) -> str:
    scores = facts.get("validation") or {}
    shown = [f"{name} {scores[name]:.1f}" for name in SHOWN if name in scores]
    labels, dim, megabytes = facts["labels"], facts["dimensions"], facts["bytes"] / 1e6
    lines = [
        f"{facts['model']}: {labels:,} labels, {dim} dimensions, {megabytes:,.1f} MB",
        f"  encoder {facts['encoder']}, trained on {facts['train_queries']:,} queries of {facts.get('corpus', '?')} "
        f"for {facts.get('epochs', '?')} epochs in {facts.get('train_s', 0):,.0f} s",
        f"  predicting takes about {facts['predict_gib']:.1f} GiB of memory",
        f"  validation, in percent: {'  '.join(shown) or 'none'}",
        f"  answers in mode {facts['mode']}; classifier (W): {_classifier(facts['classifier'])}; "
        f"judge: {'in mode all' if facts['judge'] else 'none'}",
        f"  prototypes: {_mixture(*facts['mixture'])}",
        f"  probabilities: {_calibration(facts['calibration'])}",
        f"  index {_index(facts['index'], labels)}",
        "  settings unlike the defaults:",
    ]
    return "\n".join(lines + [f"    {key} = {value}" for key, value in facts["settings"].items()])


def _has_judge(description: dict[str, Any]) -> bool:
    """Of mode all, where validation has fitted one."""
    weights = (description.get("blend") or {}).get("weights", {})
    return weights.get("all", {}).get("judge") is not None


def _mixture(text: float, centroid: float) -> str:
    if not text and not centroid:
        return "as the network makes them"
    return f"weighted means of the network's (1), label texts ({text:g}) and centroids ({centroid:g})"


def _calibration_facts(description: dict[str, Any]) -> dict[str, Any] | None:
    """Of the mode that predicts when nobody names one."""
    found = read_calibrations(description).get(default_mode(description))
    return None if found is None else found.facts


def _classifier(facts: dict[str, Any] | None) -> str:
    return "none" if facts is None else f"against {facts['labels']} labels, {facts['epochs']} epochs"


def _calibration(facts: dict[str, Any] | None) -> str:
    """The error is in percent, of what was held out from fitting it."""
    if facts is None:
        return "none"
    errors = f"{facts['error_at_1']:.1f} for the best label, {facts['error_at_5']:.1f} for the best five"
    return f"fitted on {facts['queries']:,} validation queries; calibration error {errors}"


def _index_facts(path: Path) -> dict[str, Any] | None:
    try:
        found = read_index_description(path / DIRECTORY)
        return {"backend": found["backend"], **(found["facts"].get("recall") or {})}
    except UnusableIndex:
        return None


def _index(facts: dict[str, Any] | None, labels: int) -> str:
    if facts is None or facts["backend"] == "exact":
        advice = "; `primexmc index` builds one, quicker on a CPU for so many labels" if labels >= EXACT_BELOW else ""
        return f"none: the search is exact{advice}"
    return f"{facts['backend']}, finds {100 * facts['recall']:.1f} % of the best {facts['at']} labels"
