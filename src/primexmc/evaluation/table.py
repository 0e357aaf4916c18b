"""Results as plain text for the screen and for log files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

METHOD_COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@100", "R@10", "head", "torso", "tail")
FAMILIES = ("P", "nDCG", "PSP", "PSnDCG", "R")
DEPTHS = (1, 3, 5, 10, 100)
BUCKET_COLUMNS = ("labels", "positives", "P@1", "P@5", "R@10", "R@100")


def format_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """One row a method; `results` is what `evaluate` and `score` give, by name. Recall also by label frequency."""
    flat = {method: {**scores, **_bucket_recall(scores)} for method, scores in results.items()}
    columns = [name for name in METHOD_COLUMNS if any(name in scores for scores in flat.values())]
    rows = [[method, *(_shown(scores.get(name)) for name in columns)] for method, scores in flat.items()]
    note = "\n(head, torso, tail: R@10 of the labels by how often they were trained, a third of the pairs each)"
    return aligned([["", *columns], *rows]) + (note if "head" in columns else "")


def format_result(result: Mapping[str, Any]) -> str:
    """One method's numbers: all metrics by k, then head, torso and tail."""
    depths = [k for k in DEPTHS if any(f"{family}@{k}" in result for family in FAMILIES)]
    rows = [[family, *(_shown(result.get(f"{family}@{k}")) for k in depths)] for family in FAMILIES]
    parts = [aligned([["in percent, at", *map(str, depths)], *rows])]
    if "buckets" in result:
        columns = [name for name in BUCKET_COLUMNS if any(name in scores for scores in result["buckets"].values())]
        buckets = [[name, *(_shown(scores.get(key)) for key in columns)] for name, scores in result["buckets"].items()]
        parts.append(aligned([["labels by frequency", *columns], *buckets]))
        parts[-1] += "\n(P@k: the group's share of P@k; R@k: of the group's positives alone)"
    if "queries" in result and "labels" in result:
        seconds = f" in {result['seconds']:.1f} s" if "seconds" in result else ""
        parts.append(f"{result['queries']:,} queries, {result['labels']:,} labels{seconds}")
    return "\n\n".join(parts)


def _bucket_recall(scores: Mapping[str, Any]) -> dict[str, float]:
    """R@10 of head, torso and tail labels; it stands in the columns after R@10 itself."""
    return {name: bucket["R@10"] for name, bucket in scores.get("buckets", {}).items() if "R@10" in bucket}


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        row[0].ljust(widths[0])
        + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
