"""What a recipe claims of its methods, and whether rows of a comparison bear it out.

    [[claims]]
    says = "the regulariser helps"
    better = "prime-lite"
    than = "no regulariser"
    measure = "PSP@1"               P@1 where none is named

or `like` in place of `than`: then the two are to lie within half a point of each other, `within` names another width.

One rule judges all claims. s is the spread of a run: the square root of the mean variance over seeds of all methods of
a data set. The means of two methods over n and m seeds differ by more than chance where the difference is above
2 s sqrt(1/n + 1/m), which for two seeds each is twice the spread.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UserError, did_you_mean
from .field import Row

KEYS = ("says", "better", "than", "like", "measure", "within")
Verdict = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`better` has more of the measure than `than`; or about as much, within so many points."""

    says: str
    better: str
    than: str
    measure: str = "P@1"
    within: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], methods: Iterable[str], source: str) -> Claim:
        """From a recipe's table, checked against the methods that the recipe has."""
        for key in values:
            if key not in KEYS:
                raise UserError(f'{source}: "{key}" is nothing that a claim has.{did_you_mean(key, KEYS)}')
        if not {"says", "better"} <= values.keys() or ("than" in values) == ("like" in values):
            raise UserError(f"{source}: a claim has says, better, and either than or like.")
        known, other = list(methods), str(values.get("than", values.get("like")))
        for name in (str(values["better"]), other):
            if name not in known:
                raise UserError(f'{source}: a claim names "{name}".{did_you_mean(name, known)}')
        return cls(
            says=str(values["says"]),
            better=str(values["better"]),
            than=other,
            measure=str(values.get("measure", "P@1")),
            within=float(values.get("within", 0.5)) if "like" in values else None,
        )


@dataclass(frozen=True)
class Finding:
    """A claim on one data set: the difference of the means, how large chance may make it, and the verdict."""

    claim: Claim
    data: str
    difference: float
    noise: float
    verdict: Verdict


def find(claims: Iterable[Claim], rows: Sequence[Row]) -> list[Finding]:
    """Of the claims whose methods have rows of two seeds at least; in their order, data set by data set."""
    datasets = list(dict.fromkeys(str(row["data"]) for row in rows))
    here = {data: [row for row in rows if row["data"] == data] for data in datasets}
    found = [_finding(claim, data, here[data]) for claim in claims for data in datasets]
    return [finding for finding in found if finding is not None]


def spread_of_a_run(rows: Iterable[Row], measure: str) -> float:
    """s: the square root of the mean variance over seeds, each method weighed by the seeds beyond its first."""
    groups = [values for values in _by_method(rows, measure).values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in groups)
    return math.sqrt(sum(statistics.variance(values) * (len(values) - 1) for values in groups) / max(freedom, 1))


def _finding(claim: Claim, data: str, rows: Sequence[Row]) -> Finding | None:
    by_method = _by_method(rows, claim.measure)
    better, than = by_method.get(claim.better, []), by_method.get(claim.than, [])
    if min(len(better), len(than)) < 2:
        return None
    difference = statistics.fmean(better) - statistics.fmean(than)
    noise = 2 * spread_of_a_run(rows, claim.measure) * math.sqrt(1 / len(better) + 1 / len(than))
    return Finding(claim, data, difference, noise, _verdict(claim, difference, noise))


def _verdict(claim: Claim, difference: float, noise: float) -> Verdict:
    """A claim of likeness holds within its width; beyond it, it fails only where that is more than chance."""
    if claim.within is not None:
        if abs(difference) <= claim.within:
            return "holds"
        return "does not hold" if abs(difference) - claim.within > noise else "undecided"
    if abs(difference) <= noise:
        return "undecided"
    return "holds" if difference > 0 else "does not hold"


def _by_method(rows: Iterable[Row], measure: str) -> dict[str, list[float]]:
    """The seeds' numbers of each method in mode theta."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row.get("mode") == "theta" and isinstance(row.get(measure), (int, float)):
            values.setdefault(str(row["method"]), []).append(float(row[measure]))
    return values
