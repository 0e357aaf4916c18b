"""Claims: what may stand in a recipe, and the rule that judges them, counted by hand."""

from __future__ import annotations

import math

import pytest

from primexmc.compare.verdicts import Claim, find, spread_of_a_run, with_course
from primexmc.errors import UserError


def rows_of(numbers, data="d", measure="P@1"):
    return [
        {"data": data, "mode": "theta", "method": method, "seed": seed, measure: value}
        for method, values in numbers.items()
        for seed, value in enumerate(values)
    ]


def test_the_spread_of_a_run():
    """Variances 2, 0 and (three seeds) 1, the last with twice the weight; one seed says nothing."""
    rows = rows_of({"a": [1.0, 3.0], "b": [5.0, 5.0], "c": [1.0, 2.0, 3.0], "d": [9.0]})
    assert spread_of_a_run(rows, "P@1") == pytest.approx(math.sqrt((2.0 + 0.0 + 2 * 1.0) / 4))
    assert spread_of_a_run(rows[-1:], "P@1") == 0.0


@pytest.mark.parametrize(
    ("other", "within", "verdict"),
    [
        ([47.9, 48.1], None, "holds"),  # 2 points ahead; chance makes .28
        ([49.7, 49.9], None, "undecided"),
        ([52.0, 52.2], None, "does not hold"),
        ([50.2, 50.4], 0.5, "holds"),
        ([50.6, 50.8], 0.5, "undecided"),  # .7 apart: beyond .5, but by less than chance
        ([51.6, 51.8], 0.5, "does not hold"),
    ],
)
def test_the_rule(other, within, verdict):
    claim = Claim(says="it helps", better="with", than="without", within=within)
    (found,) = find([claim], rows_of({"with": [49.9, 50.1], "without": other}))
    spread = math.sqrt(((0.1**2) * 2 + (0.1**2) * 2) / 2)
    assert found.noise == pytest.approx(2 * spread * math.sqrt(1 / 2 + 1 / 2))
    assert found.difference == pytest.approx(50.0 - sum(other) / 2)
    assert found.verdict == verdict


def test_each_data_set_by_itself_and_never_one_seed():
    rows = rows_of({"a": [1.0, 1.2], "b": [0.0, 0.2]}) + rows_of({"a": [1.0], "b": [0.0, 0.1]}, data="e")
    rows += [{**row, "mode": "all", "P@1": 99.0} for row in rows]
    found = find([Claim(says="a is better", better="a", than="b")], rows)
    assert [(one.data, one.verdict) for one in found] == [("d", "holds")]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"says": "it helps", "better": "a"}, "one of than, like, at_least"),
        ({"says": "it helps", "better": "a", "than": "b", "like": "b"}, "one of than, like, at_least"),
        ({"says": "it helps", "better": "a", "than": "with b"}, 'names "with b"'),
        ({"says": "it helps", "better": "a", "then": "b"}, '"then" is nothing.*"than"'),
    ],
)
def test_what_is_wrong_with_a_claim(values, sentence):
    with pytest.raises(UserError, match=sentence):
        Claim.of(values, ["a", "b"], "mine.toml")


@pytest.mark.parametrize(
    ("other", "verdict"), [(40.0, "holds"), (50.4, "holds"), (50.6, "undecided"), (51.6, "does not hold")]
)
def test_no_less(other, verdict):
    claim = Claim.of({"says": "no worse", "better": "a", "at_least": "b"}, ["a", "b"], "mine.toml")
    (found,) = find([claim], rows_of({"a": [49.9, 50.1], "b": [other - 0.1, other + 0.1]}))
    assert found.verdict == verdict


def test_the_course_of_training_can_be_claimed_of():
    course = [{"epoch": 2, "seconds": 1.0, "P@1": 30.0}, {"epoch": 3, "P@1": 31.0}]
    rows = [
        with_course({**row, "key": f"{row['method']} {row['seed']}"}, {"curve": course if row["method"] == "a" else []})
        for row in rows_of({"a": [1.0, 1.0], "b": [5.0, 5.0]})
    ]
    assert rows[0]["P@1 at epoch 3"] == 31.0 and "P@1 at epoch 2" not in rows[2]
    claim = Claim(says="fast", better="a", than="b", measure="P@1 at epoch 2")
    assert find([claim], rows) == [], "nobody looked at b"


def test_rows_of_other_recipes_tell_of_the_spread():
    rows = rows_of({"a": [50.0, 50.0], "b": [49.0, 49.0]})
    noisy = [{**row, "key": "9", "settings": {"training.epochs": 9}} for row in rows_of({"a": [30.0, 34.0]})]
    claim = Claim(says="a is better", better="a", than="b")
    assert find([claim], rows)[0].verdict == "holds"
    (found,) = find([claim], rows, noisy)
    assert found.difference == 1.0 and found.noise == pytest.approx(2 * math.sqrt((0 + 0 + 8.0) / 3))


def test_a_claim_of_likeness():
    claim = Claim.of({"says": "much the same", "better": "a", "like": "b", "measure": "PSP@5"}, ["a", "b"], "mine.toml")
    assert (claim.than, claim.within, claim.measure) == ("b", 0.5, "PSP@5")
