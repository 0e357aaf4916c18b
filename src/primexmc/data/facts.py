"""What is worth knowing of a corpus before anything is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from ..config import DataSettings
from .corpus import Corpus, Split
from .frequency import BUCKETS, frequency_buckets
from .overlaps import num_duplicates, num_seen, num_sharing, share_naming_a_label, share_of_reverse_pairs
from .texts import Texts

_SAMPLE = 2000
_QUANTILES = (50, 90, 99, 100)


def data_facts(
    corpus: Corpus, tokenizer: Tokenizer | None = None, settings: DataSettings | None = None
) -> dict[str, Any]:
    """Plain values, ready for JSON. With a tokenizer also the lengths in tokens, of a sample."""
    splits = {name: split for name in ("train", "val", "test") if (split := getattr(corpus, name)) is not None}
    facts: dict[str, Any] = {
        "name": corpus.name,
        "labels": {
            "count": len(corpus.labels),
            "without_text": _num_empty(corpus.labels.texts),
            "sharing_a_name": num_sharing(corpus.labels.names),
        },
        "splits": {name: _split_facts(split, corpus) for name, split in splits.items()},
    }
    if corpus.train is not None:
        facts["queries_per_label"] = _frequency_facts(corpus.train)
        seen = {name: num_seen(splits[name].texts, corpus.train.texts) for name in ("val", "test") if name in splits}
        facts["texts_also_in_train"] = seen
        facts["reverse_pairs_in_train"] = share_of_reverse_pairs(corpus)
    if tokenizer is not None:
        facts["tokens"] = _token_facts(corpus, tokenizer, settings or DataSettings())
    return facts


def fact_lines(facts: dict[str, Any]) -> list[str]:
    """The same as lines of text."""
    labels = facts["labels"]
    lines = [f"{facts['name']}: {labels['count']:,} labels, {_listed(labels, 'without_text', 'sharing_a_name')}"]
    lines += [line for name, split in facts["splits"].items() for line in _split_lines(name, split)]
    lines += _frequency_lines(facts["queries_per_label"]) if "queries_per_label" in facts else []
    for name, count in facts.get("texts_also_in_train", {}).items():
        share = count / facts["splits"][name]["queries"]
        lines.append(f"{name} texts that are also in train: {count:,} ({share:.1%})")
    if facts.get("reverse_pairs_in_train") is not None:
        lines.append(f"test pairs whose reverse is in train: {facts['reverse_pairs_in_train']:.1%}")
    for kind, tokens in facts.get("tokens", {}).items():
        quantiles = ", ".join(f"{tokens[f'p{share}']} ({share} %)" for share in _QUANTILES)
        cut = f"{tokens['cut_share']:.1%} are cut at {tokens['cut_at']}"
        lines.append(f"tokens of {kind}, no more than: {quantiles}; {cut}")
    return lines


def _split_facts(split: Split, corpus: Corpus) -> dict[str, Any]:
    per_query = np.diff(split.positives.indptr)
    return {
        "queries": len(split),
        "pairs": int(split.positives.nnz),
        "filter_pairs": 0 if split.filtered is None else int(split.filtered.nnz),
        "labels_per_query": _spread(per_query),
        "without_text": _num_empty(split.texts),
        "without_labels": int((per_query == 0).sum()),
        "duplicate_texts": num_duplicates(split.texts),
        "share_naming_a_label": share_naming_a_label(split, corpus.labels),
        "graded": bool((split.positives.data != 1.0).any()),
    }


def _frequency_facts(train: Split) -> dict[str, Any]:
    counts_L = np.bincount(train.positives.indices, minlength=train.positives.shape[1])
    buckets_L = np.where(counts_L > 0, frequency_buckets(counts_L), -1)
    facts: dict[str, Any] = {**_spread(counts_L), "never_trained": int((counts_L == 0).sum())}
    for bucket, name in enumerate(BUCKETS):
        inside = counts_L[buckets_L == bucket]
        facts[name] = {"labels": len(inside), "least": int(inside.min()) if len(inside) else 0}
    return facts


def _token_facts(corpus: Corpus, tokenizer: Tokenizer, settings: DataSettings) -> dict[str, Any]:
    whole: Tokenizer = Tokenizer.from_str(tokenizer.to_str())
    whole.no_padding()
    whole.no_truncation()
    queries = corpus.train or corpus.test or corpus.val
    kinds: dict[str, tuple[Sequence[str], int]] = {"labels": (corpus.labels.texts, settings.label_tokens)}
    if queries is not None:
        kinds = {"queries": (queries.texts, settings.query_tokens), **kinds}
    return {kind: _token_spread(texts, whole, limit) for kind, (texts, limit) in kinds.items()}


def _token_spread(texts: Sequence[str], tokenizer: Tokenizer, limit: int) -> dict[str, float]:
    sample = Texts.of(texts)[:: max(1, len(texts) // _SAMPLE)]
    lengths = np.array([len(encoding.ids) for encoding in tokenizer.encode_batch_fast(list(sample))])
    quantiles = {f"p{share}": int(np.percentile(lengths, share, method="higher")) for share in _QUANTILES}
    means = {"mean": float(lengths.mean()), "mean_when_cut": float(lengths.clip(max=limit).mean())}
    return {**quantiles, **means, "cut_at": limit, "cut_share": float((lengths > limit).mean())}


def _num_empty(texts: Sequence[str]) -> int:
    return int((Texts.of(texts).num_bytes == 0).sum())


def _spread(counts: NDArray[Any]) -> dict[str, float]:
    return {"mean": float(counts.mean()), "median": float(np.median(counts)), "most": int(counts.max())}


def _spread_text(spread: dict[str, Any]) -> str:
    return f"{spread['mean']:.1f} on average, median {spread['median']:g}, at most {spread['most']:,}"


def _listed(values: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{values[name]:,} {name.replace('_', ' ')}" for name in names)


def _split_lines(name: str, split: dict[str, Any]) -> list[str]:
    graded = ", graded relevance" if split["graded"] else ""
    filtered = f", {split['filter_pairs']:,} filter pairs" if split["filter_pairs"] else ""
    return [
        f"{name}: {split['queries']:,} queries, {split['pairs']:,} pairs{filtered}{graded}",
        f"  labels per query: {_spread_text(split['labels_per_query'])}",
        f"  {_listed(split, 'without_text', 'without_labels', 'duplicate_texts')}",
        f"  texts that name one of their labels: {split['share_naming_a_label']:.1%}",
    ]


def _frequency_lines(facts: dict[str, Any]) -> list[str]:
    parts = [f"{name} {facts[name]['labels']:,} (from {facts[name]['least']:,} queries)" for name in BUCKETS]
    return [
        f"train queries per label: {_spread_text(facts)}",
        f"  labels by a third of the pairs each: {', '.join(parts)}; {facts['never_trained']:,} never trained",
    ]
