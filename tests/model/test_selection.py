"""Which labels may be answers: against sorting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from model.test_storage import NAMES, NUM_LABELS, make_model
from model.tiny import random_texts
from scipy.sparse import csr_matrix

from primexmc.data.corpus import DataWarning
from primexmc.errors import UserError
from primexmc.model import selection
from primexmc.model.calibration import Calibration
from primexmc.model.selection import Selection

TEXTS = ["boat", *random_texts(1, 9), ""]


def by_hand(model, wanted, top, filtered=None, threshold=-2.0):
    """Scores of all wanted labels, sorted."""
    s_QL = model.encode(TEXTS) @ model.prototypes_LD.numpy().T
    answers = []
    for row, text in enumerate(TEXTS):
        banned = set() if filtered is None else set(filtered[[row]].indices.tolist())
        able = [n for n in wanted if n not in banned and s_QL[row, n] >= threshold]
        answers.append(sorted(able, key=lambda n: -s_QL[row, n])[:top] if text.strip() else [])
    return answers


def ids(predictions):
    return [[answer.id for answer in row] for row in predictions]


@pytest.mark.parametrize("many", [0, 256], ids=["alone", "as filter"])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, range(8)),
        ({"allowed": ["uid 3", "uid 5", "last"]}, [3, 5, 7]),
        ({"allowed": ["boat"]}, [0, 1]),
        ({"blocked": ["boat", "uid 7"]}, [2, 3, 4, 5, 6]),
        ({"allowed": ["uid 0", "uid 4", "uid 6"], "blocked": ["uid 4"]}, [0, 6]),
        ({"allowed": []}, []),
        ({"blocked": [f"uid {n}" for n in range(8)]}, []),
    ],
)
def test_only_labels_that_are_wanted(monkeypatch, many, options, wanted):
    monkeypatch.setattr(selection, "MANY_BLOCKED", many)
    model = make_model()
    filtered = csr_matrix(np.random.default_rng(0).random((len(TEXTS), NUM_LABELS)) < 0.3).astype(np.float32)
    assert ids(model.predict(TEXTS, 4, **options)) == by_hand(model, wanted, 4)
    assert ids(model.predict(TEXTS, 4, filtered=filtered, **options)) == by_hand(model, wanted, 4, filtered)
    assert ids(model.predict(TEXTS, 4, threshold=0.1, **options)) == by_hand(model, wanted, 4, threshold=0.1)
    answer = model.predict(TEXTS, 1)[0][0]
    assert (answer.label, answer.uid) == (NAMES[answer.id], f"uid {answer.id}")


def test_a_threshold_of_probability():
    model = make_model()
    model.calibrations = {"theta": Calibration((-1.0, -0.5, 0.0, 4.0, 0.0, 0.0))}
    chosen = Selection(model, threshold=0.3, by_probability=True)
    full, found = model.predict(TEXTS, 6), chosen.predict(TEXTS, 6)
    for row, kept, probabilities in zip(full, found, model.probabilities(full), strict=True):
        assert kept == [answer for answer, p in zip(row, probabilities, strict=True) if p >= 0.3]
    assert sum(map(len, found)) < sum(map(len, full)), "the threshold takes something away"


def test_labels_that_are_not_known():
    model = make_model()
    with pytest.warns(DataWarning, match=r'blocked labels: 1 of 2 labels are not known to the model, "nonsense" first'):
        model.predict(TEXTS, blocked=["nonsense", "last"])
    with pytest.raises(UserError, match=r'allowed labels: the model knows no label .* "bost".* Did you mean "boat"'):
        model.predict(TEXTS, allowed=["bost"])
    with pytest.raises(UserError, match="a list of label uids"):
        model.predict(TEXTS, allowed="boat")


def test_without_calibration_probability_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="no calibrated probabilities"):
        make_model().probabilities([[]])
