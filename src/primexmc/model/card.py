"""The model card: README.md in the model directory. Plain facts, from what the model knows of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from .mixture import NO_MIXTURE

if TYPE_CHECKING:
    from .model import PrimeModel

MARK = "<!-- Written by primexmc at every save; without this line it is left alone. -->"
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@10", "R@100")
HEAD = """---
library_name: primexmc
pipeline_tag: text-classification
tags: [extreme-multi-label-classification, primexmc]
---
"""


def card_text(model: PrimeModel) -> str:
    """The whole card."""
    labels, facts = len(model.labels), model.facts
    untrained = int((model.label_counts_L == 0).sum())
    sections = [
        f"{HEAD}{MARK}\n\n# {facts.get('corpus', 'A primexmc model')}",
        f"Names the right few of {labels:,} labels for a text. Made with primexmc {__version__}, by label prototypes "
        "(PRIME, NAACL 2025)." + _beside_prototypes(model),
        "```python\nfrom primexmc import PrimeModel\n\n"
        'PrimeModel.load("THIS DIRECTORY").predict(["some text"], top=5)\n```',
        "## Data\n\n"
        f'{model.num_train_queries:,} training queries of "{facts.get("corpus", "unknown")}"; {labels:,} labels, '
        f"{untrained:,} of them without a training query.",
        "## Metrics\n\n" + _metrics(model),
        "## Limits\n\n" + "\n".join(f"- {limit}" for limit in _limits(model)),
        "## Licence\n\n" + _licence(model),
        "## Settings unlike the defaults\n\n```toml\n" + _settings(model.settings.unlike_defaults()) + "\n```",
    ]
    return "\n\n".join(sections) + "\n"


def _beside_prototypes(model: PrimeModel) -> str:
    told = []
    if model.mixture != NO_MIXTURE:
        told.append(
            "Its prototypes are weighted means: where the network's counts 1, the label's text counts "
            f"{model.mixture.text:g} and its centroid {model.mixture.centroid:g}."
        )
    if model.classifier_LD is not None:
        told.append(
            "Beside the prototypes it has a classifier, a vector for each label that was trained on the finished "
            f"embeddings of the training queries; it answers in mode {model.mode_in_use}."
        )
    if model.blend is not None and model.blend.of("all").judge is not None:
        told.append("In mode all a judge, fitted on validation queries, corrects the sum of the voices.")
    return "".join(f" {sentence}" for sentence in told)


def _metrics(model: PrimeModel) -> str:
    scores: Mapping[str, float] = model.facts.get("validation") or {}
    shown = [name for name in SHOWN if name in scores]
    if not shown:
        return "It was trained without validation; nothing was measured. `primexmc evaluate` measures it on data."
    table = [" | ".join(shown), " | ".join("---" for _ in shown), " | ".join(f"{scores[name]:.1f}" for name in shown)]
    lines = ["On validation queries, in percent:", "", *(f"| {line} |" for line in table), ""]
    lines.append("The best epoch was chosen by the same queries, so expect slightly less on others.")
    if model.calibration is not None:
        told = model.calibration.facts
        lines.append(
            f"Probabilities were fitted on {told.get('queries', 0):,} validation queries; their calibration error on "
            f"held-out folds is {told.get('error_at_1', 0):.1f} for the best label and {told.get('error_at_5', 0):.1f} "
            "for the best five."
        )
    return "\n".join(lines)


def _limits(model: PrimeModel) -> list[str]:
    settings = model.settings
    limits = [
        f"A text is read up to its first {settings.data.query_tokens} tokens.",
        "It knows its own labels only, and always has an answer for a text with a word in it: use a threshold where a "
        "text may have no label at all.",
        "What was rare or missing in the training data, it does less well than the averages above tell.",
    ]
    if settings.encoder.name == "static":
        limits.append("The encoder adds up words of lower-case English without their order.")
    else:
        limits.append(f"Languages and biases are those of its encoder, {settings.encoder.name}.")
    if model.memory is not None:
        limits.append("memory.safetensors holds the texts of its training queries: who has the model has them, too.")
    return limits


def _licence(model: PrimeModel) -> str:
    """What is not known is said to be unknown."""
    name = model.settings.encoder.name
    encoder = (
        "The encoder began as a table made from all-MiniLM-L6-v2 (Apache-2.0)."
        if name == "static"
        else f"The encoder began as {name}; its licence is not known to primexmc."
    )
    return (
        f"{encoder} The licence of the training data is not known to primexmc. Whoever passes the model on writes here "
        "which licences hold."
    )


def _settings(values: Mapping[str, Any]) -> str:
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
