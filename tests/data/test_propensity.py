from __future__ import annotations

import math

import numpy as np
import pytest

from primexmc.data.propensity import inverse_propensity


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.6, 2.6), (0.5, 0.4)])
def test_against_the_formula(a: float, b: float) -> None:
    counts = [0, 1, 2, 17, 3000]
    found = inverse_propensity(np.array(counts), 10_000, a, b)
    for count, value in zip(counts, found, strict=True):
        c = (math.log(10_000) - 1) * (b + 1) ** a
        assert value == pytest.approx(1 + c * math.exp(-a * math.log(count + b)), rel=1e-12)
    assert found.dtype == np.float64


def test_by_hand() -> None:
    """n + b = b + 1, so that the powers cancel."""
    assert inverse_propensity(np.array([1]), 20, 0.5, 3.0)[0] == pytest.approx(1 + (math.log(20) - 1), rel=1e-12)


@pytest.mark.parametrize("num_queries", [0, 1])
def test_of_a_single_query_all_labels_count_alike(num_queries: int) -> None:
    assert inverse_propensity(np.array([0, 1]), num_queries, 0.55, 1.5).tolist() == [1, 1]


def test_two_queries_are_enough_for_the_formula() -> None:
    c = (math.log(2) - 1) * 2.5**0.55
    expected = [1 + c * 1.5**-0.55, 1 + c * 2.5**-0.55, 1 + c * 3.5**-0.55]
    assert inverse_propensity(np.array([0, 1, 2]), 2, 0.55, 1.5).tolist() == pytest.approx(expected, rel=1e-12)
    assert min(expected) > 0


def test_no_division_by_zero() -> None:
    assert np.isfinite(inverse_propensity(np.array([0, 1]), 100, 0.5, 0.0)).all()
