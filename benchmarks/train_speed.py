"""How fast training is: the real loop on made-up data of LF-AmazonTitles-131K's shape, random weights, whole epochs.

    python benchmarks/train_speed.py --encoder distilbert        # on a GPU
    python benchmarks/train_speed.py --encoder static --queries 30000 --labels 15000 --batch 1600

The first epoch warms up (kernels are compiled, memory is taken) and does not count; the others do, with everything in
them: drawing labels, the step with all losses and R, centroids and clusters made again before each of them (which real
trainings do every fifth epoch). Prints one table and adds a row to benchmarks/results/train_speed.json.

`mfu`: 6 x the encoder's weights outside its tables x tokens, over the time and the chip's dense bf16 rate on the data
sheet (H100, H200: 989 TFLOP/s); none where the chip is another. `estimate_gib`: what `primexmc info` would have said.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from made_up import training_data
from record import RESULTS, add_rows, facts, show
from torch import nn
from torch.profiler import profile

from primexmc.config import Settings, parse_overrides
from primexmc.model.encode import pick_device, wants_bf16
from primexmc.model.encoder import TextEncoder, load_encoder
from primexmc.model.size import EncoderSize
from primexmc.training.begin import begin_state
from primexmc.training.estimate import GIB, Plan, host_bytes, memory_bytes
from primexmc.training.log import Log, peak_memory_gib
from primexmc.training.loop import run_phase
from primexmc.training.phase import Phase
from primexmc.training.state import TrainingState

VOCABULARY = 30_522
SIZES = {  # layers, width, inner width, heads; the small ones are for tests
    "distilbert": (6, 768, 3072, 12),
    "minilm": (6, 384, 1536, 12),
    "tiny-distilbert": (2, 64, 128, 2),
    "tiny-minilm": (2, 32, 64, 2),
}
TFLOPS = {"H100": 989.0, "H200": 989.0, "A100": 312.0}
PROFILED = (40, 50)  # steps of the first epoch
COLUMNS = ["encoder", "labels", "batch", "queries_per_s", "sequences_per_s", "mfu", "step_ms", "peak_gib"]


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    device = pick_device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.cap_gib:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(options.cap_gib * GIB / total, device)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PRIMEXMC_CACHE"] = scratch
        row = measure(options, device, Path(scratch))
    show([row], [*COLUMNS, "estimate_gib", "begin_s"])
    add_rows(options.out, [row])


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", choices=["static", *SIZES], default="distilbert")
    parser.add_argument("--queries", type=int, default=294_805)
    parser.add_argument("--labels", type=int, default=131_073)
    parser.add_argument("--batch", type=int, default=3200)
    parser.add_argument("--positives", type=int, default=2, help="labels drawn for a query")
    parser.add_argument("--epochs", type=int, default=2, help="epochs that count")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 takes all cores")
    parser.add_argument("--cap-gib", type=float, default=0, help="let the GPU have no more memory than this")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, as for train")
    parser.add_argument("--profile", action="store_true", help="also show where ten steps of the first epoch go")
    parser.add_argument("--out", type=Path, default=RESULTS / "train_speed.json")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, device: torch.device, scratch: Path) -> dict[str, Any]:
    """One row."""
    settings = make_settings(options)
    torch.manual_seed(0)
    encoder = make_encoder(options.encoder, settings).to(device)
    data = training_data(options.queries, options.labels, VOCABULARY)
    phase = Phase("all", settings, data, 1 + options.epochs, wants_bf16(settings.training.precision, device))
    started = time.perf_counter()
    state = begin_state(phase, encoder, device)
    clock = Clock(phase, state, options.profile)
    begin_s = clock.now() - started
    encoder.register_forward_pre_hook(clock.count)
    with Log(scratch / "metrics.jsonl", quiet=True) as log:
        run_phase(phase, state, log, None, clock.after_a_step)
    return {
        "encoder": options.encoder,
        **{name: getattr(options, name) for name in ("queries", "labels", "batch", "positives", "epochs")},
        **rates(clock, encoder, device),
        "peak_gib": round(peak_memory_gib(device), 2),
        "estimate_gib": round(estimate(phase, clock, encoder, device) / GIB, 2),
        "begin_s": round(begin_s, 1),
        "settings": options.set,
        **facts(device),
    }


@dataclass
class Clock:
    """The time at each epoch's end, with the device idle, and what the encoder was given until then."""

    phase: Phase
    state: TrainingState
    profiles: bool
    sequences: int = 0
    tokens: int = 0
    ends: list[tuple[float, int, int, int]] = field(default_factory=list)  # seconds, steps, sequences, tokens
    profiler: profile | None = None

    def now(self) -> float:
        if self.state.device.type == "cuda":
            torch.cuda.synchronize(self.state.device)
        return time.perf_counter()

    def count(self, _: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.sequences += len(arguments[0])
        self.tokens += int(arguments[0].offsets[-1])

    def after_a_step(self) -> None:
        if self.profiles:
            self._profile()
        if self.state.position == self.phase.schedule.steps_per_epoch:
            self.ends.append((self.now(), self.state.step, self.sequences, self.tokens))

    def _profile(self) -> None:
        if self.state.step == PROFILED[0]:
            self.profiler = profile()
            self.profiler.start()
        elif self.state.step == PROFILED[1] and self.profiler is not None:
            self.now()
            self.profiler.stop()
            by = "self_device_time_total" if self.state.device.type == "cuda" else "self_cpu_time_total"
            print(self.profiler.key_averages().table(sort_by=by, row_limit=40, max_name_column_width=70))

    def counted(self) -> tuple[float, int, int, int]:
        """Of the epochs after the first."""
        first, last = self.ends[0], self.ends[-1]
        return last[0] - first[0], last[1] - first[1], last[2] - first[2], last[3] - first[3]


def rates(clock: Clock, encoder: TextEncoder, device: torch.device) -> dict[str, Any]:
    seconds, steps, sequences, tokens = clock.counted()
    queries = clock.phase.data.num_queries * (len(clock.ends) - 1)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    rate = next((value for chip, value in TFLOPS.items() if chip in name), None)
    flops = 6 * weights_outside_tables(encoder) * tokens
    return {
        "queries_per_s": round(queries / seconds, 1),
        "sequences_per_s": round(sequences / seconds, 1),
        "tokens_per_s": round(tokens / seconds),
        "mfu": None if rate is None else round(flops / seconds / rate / 1e12, 4),
        "step_ms": round(1000 * seconds / steps, 2),
        "labels_a_step": round((sequences - queries) / steps),
    }


def estimate(phase: Phase, clock: Clock, encoder: TextEncoder, device: torch.device) -> float:
    """What the rules of `primexmc info` say of memory, given the same counts."""
    _, steps, sequences, _ = clock.counted()
    data, settings = phase.data, phase.settings
    batch = min(settings.training.batch_size, data.num_queries)
    plan = Plan(
        num_queries=data.num_queries,
        num_labels=data.num_labels,
        num_pairs=data.positives.nnz,
        text_bytes=0,
        query_tokens=float(np.mean(data.query_tokens.lengths)),
        label_tokens=float(np.mean(data.label_tokens.lengths)),
        batch_queries=batch,
        batch_labels=round(sequences / steps) - batch,
        passes=(("all", data.num_queries, phase.last_epoch),),
        validates=False,
    )
    gpu = device.type == "cuda"
    memory = memory_bytes(plan, settings, size_of(encoder), bf16=phase.bf16, flash=gpu)
    return memory["total"] if gpu else memory["total"] + host_bytes(plan, 0, on_gpu=False)


def size_of(encoder: TextEncoder) -> EncoderSize:
    parameters = sum(parameter.numel() for parameter in encoder.parameters())
    config = getattr(getattr(encoder, "transformer", None), "config", None)
    if config is None:
        return EncoderSize(parameters, encoder.dim)
    inner = getattr(config, "hidden_dim", None) or config.intermediate_size
    return EncoderSize(parameters, encoder.dim, config.num_hidden_layers, inner, config.num_attention_heads)


def weights_outside_tables(encoder: TextEncoder) -> int:
    tables = {id(part.weight) for part in encoder.modules() if isinstance(part, nn.Embedding)}
    return sum(p.numel() for p in encoder.parameters() if id(p) not in tables and p.ndim == 2 and len(p) < VOCABULARY)


def make_settings(options: argparse.Namespace) -> Settings:
    """The paper's method for this data; refreshes before every epoch but the first."""
    values = {
        "encoder.name": options.encoder,
        "prototypes.num_free_vectors": 65_536,
        "prototypes.centroid_mode": "epoch",
        "sampling.positives_per_query": options.positives,
        "training.batch_size": options.batch,
        "training.epochs": 1 + options.epochs,
        "training.validate_every": 0,
        "training.warmup_steps": 100,
    }
    if options.encoder == "static":
        values |= {"loss.name": "softmax", "prototypes.width": 256, "prototypes.dropout": 0.0, "encoder.dropout": 0.1}
    return Settings().with_values(values | parse_overrides(options.set), "train_speed")


def make_encoder(name: str, settings: Settings) -> TextEncoder:
    """Random weights in the real shapes."""
    if name == "static":
        return load_encoder(settings.encoder)
    from transformers import AutoModel, BertConfig, DistilBertConfig

    from primexmc.model.transformer import TransformerEncoder

    layers, width, inner, heads = SIZES[name]
    if "distilbert" in name:
        config = DistilBertConfig(vocab_size=VOCABULARY, n_layers=layers, dim=width, hidden_dim=inner, n_heads=heads)
    else:
        config = BertConfig(
            vocab_size=VOCABULARY, num_hidden_layers=layers, hidden_size=width, intermediate_size=inner,
            num_attention_heads=heads,
        )  # fmt: skip
    return TransformerEncoder(AutoModel.from_config(config), make_tokenizer(), "mean", settings.encoder.packed)


def make_tokenizer() -> Any:
    """Never asked: the tokens are made directly."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


if __name__ == "__main__":
    main()
