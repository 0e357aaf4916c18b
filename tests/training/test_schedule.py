"""What follows from the step: learning rate, refreshes."""

from __future__ import annotations

import pytest

from primexmc.config import Settings
from primexmc.training.schedule import Schedule


def schedule(steps_per_epoch=10, **values):
    return Schedule(
        Settings().with_values({key.replace("__", "."): v for key, v in values.items()}, "test"), steps_per_epoch
    )


def test_up_in_a_line_then_down_in_a_line():
    made = schedule(training__epochs=30, training__warmup_steps=20)
    factors = [made.learning_rate_factor(step) for step in range(300)]
    for step in range(20):
        assert factors[step] == pytest.approx((step + 1) / 20)
    for step in range(20, 300):
        assert factors[step] == pytest.approx((300 - step) / 280)
    assert max(factors) == 1 and 0 < factors[-1] < 0.01 and made.learning_rate_factor(300) == 0
    assert made.learning_rate_factor(10_000) == 0, "a refit has more steps an epoch, never less than nothing"


@pytest.mark.parametrize(
    ("epochs", "steps", "asked", "warmup"),
    [(300, 10, 100, 100), (5, 10, 100, 5), (1, 1, 100, 1), (1, 1, 0, 0), (3, 10, 0, 0)],
)
def test_warm_up_is_a_tenth_of_a_short_training_at_most(epochs, steps, asked, warmup):
    made = schedule(steps, training__epochs=epochs, training__warmup_steps=asked)
    assert made.warmup_steps == warmup
    assert 0 < made.learning_rate_factor(0) <= 1
    assert all(0 < made.learning_rate_factor(step) <= 1 for step in range(epochs * steps))


@pytest.mark.parametrize(
    ("epochs", "refresh", "every"), [(300, 1 / 60, 5), (20, 1 / 60, 1), (100, 0.1, 10), (7, 0, 1), (4, 1, 4)]
)
def test_refreshes(epochs, refresh, every):
    made = schedule(training__epochs=epochs, sampling__refresh=refresh)
    assert made.refresh_every_epochs == every
    assert [epoch for epoch in range(epochs) if made.refreshes_at(epoch)] == list(range(every, epochs, every))
