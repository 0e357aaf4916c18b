"""Data, and what a training on it would need, for `primexmc info`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from ..config import Settings
from ..data.corpus import Corpus
from ..data.facts import data_facts, fact_lines

UNKNOWN_SIZE = "training with {0}: memory and time are not known, for that encoder is not on this machine"


def data_facts_and_lines(
    corpus: Corpus, settings: Settings, preset: str | None, config: Path | None, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What `data_facts` tells, and with a train split also the estimate of a training, settings derived as for one."""
    if corpus.train is not None:
        from ..training.resolve import resolve

        settings, _ = resolve(corpus, preset, config, values)
    facts = data_facts(corpus, _tokenizer(settings.encoder.name), settings.data)
    lines = fact_lines(facts)
    if corpus.train is not None:
        facts["training"], more = _training(corpus, settings, facts["tokens"])
        lines += more
    return facts, lines


def _tokenizer(encoder: str) -> Tokenizer:
    """The encoder's own where it lies in a directory, else the embedded one: lengths differ little."""
    from importlib import resources

    own = Path(encoder).expanduser() / "tokenizer.json"
    if own.is_file():
        return Tokenizer.from_file(str(own))
    with resources.as_file(resources.files("primexmc.model") / "static_table" / "tokenizer.json") as file:
        return Tokenizer.from_file(str(file))


def _training(corpus: Corpus, settings: Settings, tokens: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    from ..model.encode import pick_device, wants_bf16
    from ..model.size import encoder_size
    from ..training.estimate import estimate, estimate_lines, plan_training
    from ..training.timing import memory_bytes_of, seconds_per_step

    size = encoder_size(settings.encoder.name)
    if size is None:
        return None, [UNKNOWN_SIZE.format(settings.encoder.name)]
    device = pick_device(settings.training.device)
    lengths = (tokens[kind]["mean_when_cut"] for kind in ("queries", "labels"))
    plan = plan_training(corpus, settings, *lengths)
    name, on_gpu = settings.encoder.name, device.type == "cuda"
    can_time = plan.batch_labels > 0 and (name == "static" or (on_gpu and Path(name).expanduser().is_dir()))
    step_s = seconds_per_step(corpus, plan, settings) if can_time else None
    bf16 = wants_bf16(settings.training.precision, device)
    facts = estimate(plan, settings, size, on_gpu=on_gpu, bf16=bf16, step_s=step_s, has_bytes=memory_bytes_of(device))
    return facts, estimate_lines(facts)
