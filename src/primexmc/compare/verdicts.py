"""What a recipe claims of its methods, and whether rows of a comparison bear it out.

    [[claims]]
    says = "the regulariser helps"
    better = "prime-lite"
    than = "no regulariser"
    measure = "PSP@1"               P@1 where none is named

or `like` in place of `than`: then the two are to lie within half a point of each other; or `at_least`: then `better` is
to lie no more than that below. `within` names another width.

One rule judges all claims. s is the spread of a run: the square root of the mean variance over seeds of all methods of
a data set. The means of two methods over n and m seeds differ by more than chance where the difference is above
2 s sqrt(1/n + 1/m), which for two seeds each is twice the spread.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UserError, did_you_mean
from .entries import SEED
from .field import Row

OTHERS = ("than", "like", "at_least")
KEYS = ("says", "better", *OTHERS, "measure", "within")
Verdict = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`better` has more of the measure than `than`; or about as much, or no less, within so many points."""

    says: str
    better: str
    than: str
    measure: str = "P@1"
    within: float | None = None
    or_more: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], methods: Iterable[str], source: str) -> Claim:
        """From a recipe's table, checked against the methods that the recipe has."""
        for key in values:
            if key not in KEYS:
                raise UserError(f'{source}: "{key}" is nothing that a claim has.{did_you_mean(key, KEYS)}')
        named = [key for key in OTHERS if key in values]
        if not {"says", "better"} <= values.keys() or len(named) != 1:
            raise UserError(f"{source}: a claim has says, better, and one of {', '.join(OTHERS)}.")
        known, other = list(methods), str(values[named[0]])
        for name in (str(values["better"]), other):
            if name not in known:
                raise UserError(f'{source}: a claim names "{name}".{did_you_mean(name, known)}')
        return cls(
            says=str(values["says"]),
            better=str(values["better"]),
            than=other,
            measure=str(values.get("measure", "P@1")),
            within=None if "than" in values else float(values.get("within", 0.5)),
            or_more="at_least" in values,
        )


@dataclass(frozen=True)
class Finding:
    """A claim on one data set: the difference of the means, how large chance may make it, and the verdict."""

    claim: Claim
    data: str
    difference: float
    noise: float
    verdict: Verdict


def find(claims: Iterable[Claim], rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Finding]:
    """Of the claims whose methods have rows of two seeds at least; in their order, data set by data set.

    `rows` are those of one recipe; rows of others, `beside` them, tell of the spread, too.
    """
    datasets, found = list(dict.fromkeys(str(row["data"]) for row in rows)), []
    for claim in claims:
        for data in datasets:
            by_method = _values([row for row in rows if row["data"] == data], claim.measure, lambda row: row["method"])
            better, than = by_method.get(claim.better, []), by_method.get(claim.than, [])
            if min(len(better), len(than)) > 1:
                spread = spread_of_a_run([row for row in [*rows, *beside] if row["data"] == data], claim.measure)
                found.append(_finding(claim, data, better, than, spread))
    return found


def with_course(row: Row, details: Mapping[str, Any]) -> Row:
    """The row with what validation said on the way, as "P@1 at epoch 2"."""
    points = [point for point in details.get("curve", ()) if "epoch" in point]
    return row | {f"{name} at epoch {at['epoch']}": value for at in points for name, value in at.items() if "@" in name}


def spread_of_a_run(rows: Iterable[Row], measure: str) -> float:
    """s: the square root of the mean variance over seeds, each method weighed by the seeds beyond its first."""
    each = {json.dumps([row.get("key"), row["method"], row["seed"]]): row for row in rows}.values()
    groups = [values for values in _values(each, measure, _settings).values() if len(values) > 1]
    freedom = sum(len(values) - 1 for values in groups)
    return math.sqrt(sum(statistics.variance(values) * (len(values) - 1) for values in groups) / max(freedom, 1))


def _finding(claim: Claim, data: str, better: Sequence[float], than: Sequence[float], spread: float) -> Finding:
    difference = statistics.fmean(better) - statistics.fmean(than)
    noise = 2 * spread * math.sqrt(1 / len(better) + 1 / len(than))
    return Finding(claim, data, difference, noise, _verdict(claim, difference, noise))


def _verdict(claim: Claim, difference: float, noise: float) -> Verdict:
    """A claim of likeness holds within its width; beyond it, it fails only where that is more than chance."""
    if claim.within is not None:
        apart = -difference if claim.or_more else abs(difference)
        if apart <= claim.within:
            return "holds"
        return "does not hold" if apart - claim.within > noise else "undecided"
    if abs(difference) <= noise:
        return "undecided"
    return "holds" if difference > 0 else "does not hold"


def _values(rows: Iterable[Row], measure: str, group_of: Callable[[Row], str]) -> dict[str, list[float]]:
    """The seeds' numbers in mode theta, group by group."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row.get("mode") == "theta" and isinstance(row.get(measure), (int, float)):
            values.setdefault(group_of(row), []).append(float(row[measure]))
    return values


def _settings(row: Row) -> str:
    """The method with all its settings but the seed: of one name there may be several."""
    settings = {key: value for key, value in row.get("settings", {}).items() if key != SEED}
    return json.dumps([row["method"], settings], sort_keys=True)
