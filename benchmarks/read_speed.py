"""How fast and how lean a data set of a given size is read and tokenised; made-up texts in the LF layout.

    python benchmarks/read_speed.py --queries 2200000 --labels 1300000 --per-query 22

Prints one table and writes one JSON to benchmarks/results/. Memory is the most that this process ever held.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from primexmc.data.corpus import Corpus
from primexmc.data.tokens import tokenise

RESULTS = Path(__file__).parent / "results"
NUM_WORDS = 60_000
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
CHUNK = 10_000
Result = TypeVar("Result")


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="read-speed-") as directory:
        print(f"making {options.queries:,} queries, {options.labels:,} labels, {options.per_query} a query ...")
        write_data(Path(directory), options)
        tokenizer = Tokenizer.from_file(str(options.tokenizer)) if options.tokenizer else made_up_tokenizer()
        steps = measure(Path(directory), tokenizer, options.max_tokens)
    report(options, steps)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--per-query", type=int, default=22, help="labels per query")
    parser.add_argument("--words", type=int, default=9, help="words per text, on average")
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json; without it a WordPiece of made-up words")
    parser.add_argument("--out", type=Path, default=RESULTS / "read_speed.json")
    return parser.parse_args(arguments)


def measure(directory: Path, tokenizer: Tokenizer, max_tokens: int) -> list[dict[str, Any]]:
    """One row a step: seconds, seconds of all cores (which other programs do not lengthen), texts/s, most memory."""
    steps: list[dict[str, Any]] = []
    cache = directory / "cache"
    corpus = timed(steps, "read", lambda: Corpus.load(directory), num_texts)
    everything = [corpus.split("train").texts, corpus.labels.texts]
    for step in ("tokenise", "tokenise again"):
        timed(
            steps, step,
            lambda: [tokenise(texts, tokenizer, max_tokens, cache_dir=cache) for texts in everything],
            lambda _: num_texts(corpus),
        )  # fmt: skip
    seconds, cpu_s = (steps[0][key] + steps[1][key] for key in ("seconds", "cpu_s"))
    speed = num_texts(corpus) / seconds
    both = {"step": "read + tokenise", "seconds": seconds, "cpu_s": cpu_s, "texts_per_s": speed}
    steps.append({**both, "peak_gb": steps[-1]["peak_gb"]})
    return steps


def num_texts(corpus: Corpus) -> int:
    return len(corpus.split("train")) + len(corpus.labels)


def timed(
    steps: list[dict[str, Any]], step: str, action: Callable[[], Result], count: Callable[[Result], int]
) -> Result:
    started, cpu_started = time.perf_counter(), time.process_time()
    result = action()
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_started
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # in KiB on Linux
    speed = count(result) / seconds
    steps.append({"step": step, "seconds": seconds, "cpu_s": cpu_s, "texts_per_s": speed, "peak_gb": peak_gb})
    return result


def report(options: argparse.Namespace, steps: list[dict[str, Any]]) -> None:
    print(f"{'step':16} {'seconds':>9} {'cpu s':>9} {'texts/s':>11} {'peak GB':>8}")
    for row in steps:
        timings = f"{row['seconds']:9.2f} {row['cpu_s']:9.2f} {row['texts_per_s']:11,.0f}"
        print(f"{row['step']:16} {timings} {row['peak_gb']:8.2f}")
    sizes = {name: getattr(options, name) for name in ("queries", "labels", "per_query", "words", "max_tokens")}
    machine = {"cpu_cores": os.cpu_count(), "python": platform.python_version()}
    tokenizer = "given" if options.tokenizer else "made up"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**sizes, "tokenizer": tokenizer, **machine, "steps": steps}, indent=1) + "\n")
    print(f"-> {options.out}")


def write_data(directory: Path, options: argparse.Namespace) -> None:
    """trn.json and lbl.json, written as they are made."""
    random = np.random.default_rng(0)
    words = made_up_words(random)
    with (directory / "lbl.json").open("w") as file:
        for row, title in enumerate(titles(random, words, options.labels, options.words)):
            file.write(json.dumps({"uid": f"L{row}", "title": title, "content": ""}) + "\n")
    with (directory / "trn.json").open("w") as file:
        for row, title in enumerate(titles(random, words, options.queries, options.words)):
            labels = random.integers(0, options.labels, options.per_query).tolist()
            targets = {"target_ind": labels, "target_rel": [1.0] * len(labels)}
            file.write(json.dumps({"uid": f"Q{row}", "title": title, "content": "", **targets}) + "\n")


def titles(random: np.random.Generator, words: list[str], count: int, mean_words: int) -> Iterator[str]:
    """Frequent words more often, as in language."""
    for start in range(0, count, CHUNK):
        lengths = 1 + random.poisson(mean_words - 1, min(CHUNK, count - start))
        ranks = (NUM_WORDS ** random.random(lengths.sum())).astype(np.int64) - 1
        ends = np.cumsum(lengths)
        for end, length in zip(ends, lengths, strict=True):
            yield " ".join(words[rank] for rank in ranks[end - length : end]).capitalize()


def made_up_words(random: np.random.Generator) -> list[str]:
    lengths = 2 + random.poisson(4, NUM_WORDS)
    return ["".join(random.choice(LETTERS, length)) for length in lengths]


def made_up_tokenizer() -> Tokenizer:
    """WordPiece like BERT's: frequent words whole, the others in pieces."""
    words = made_up_words(np.random.default_rng(0))
    pieces = [first + second for first in LETTERS for second in ("", *LETTERS)]
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words[:20_000], *pieces, *(f"##{piece}" for piece in pieces)]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    return tokenizer


if __name__ == "__main__":
    warnings.simplefilter("default")
    main()
