from __future__ import annotations

import random
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from primexmc.config import DataSettings
from primexmc.data.corpus import Corpus, DataWarning, Labels, Split
from primexmc.errors import UserError


def corpus_of(uids: list[str], **parts: Any) -> Corpus:
    """Query i has the text "text i", label i and the filter pair (i, i + 1)."""
    count = len(uids)
    positives = csr_matrix(np.eye(count, count + 1, dtype=np.float32))
    filtered = csr_matrix(np.eye(count, count + 1, k=1, dtype=np.float32))
    train = Split([f"text of {uid}" for uid in uids], positives, uids, filtered)
    names = [f"label {row}" for row in range(count + 1)]
    return Corpus("made up", Labels(names, names, names), train, **parts)


def held_out(corpus: Corpus, **settings: Any) -> set[str]:
    divided = corpus.with_validation(DataSettings(**settings))
    return set() if divided.val is None else set(divided.val.uids)


# --- splits -----------------------------------------------------------------------------------------------------------


def test_splits_by_both_names() -> None:
    corpus = corpus_of(["a"])
    assert corpus.split("trn") is corpus.split("train") is corpus.train
    with pytest.raises(UserError, match="made up has no test split, only train"):
        corpus.split("tst")
    with pytest.raises(UserError, match=r'"tets" is no split; .* Did you mean "test"\?'):
        corpus.split("tets")


def test_taken_queries_bring_their_labels_and_filters() -> None:
    train = corpus_of(["a", "b", "c"]).split("train")
    taken = train.take(np.array([2, 0]))
    assert list(taken.uids) == ["c", "a"]
    assert list(taken.texts) == ["text of c", "text of a"]
    assert taken.positives.toarray().tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    assert taken.filtered is not None
    assert taken.filtered.toarray().tolist() == [[0, 0, 0, 1], [0, 1, 0, 0]]


# --- validation -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.2, 0.5]), st.integers(1, 30))
def test_validation_depends_on_uids_alone(seed: int, fraction: float, largest: int) -> None:
    uids = [f"q{number}" for number in range(100)]
    shuffled = random.Random(seed).sample(uids, len(uids))
    settings = {"validation_fraction": fraction, "validation_max": largest}
    chosen = held_out(corpus_of(uids), **settings)
    assert chosen == held_out(corpus_of(shuffled), **settings)
    assert len(chosen) == min(round(100 * fraction), largest)


def test_the_choice_never_changes() -> None:
    """Whoever changes the hash divides everybody's data anew: results would no longer be comparable."""
    assert held_out(corpus_of([f"q{number}" for number in range(100)])) == {"q0", "q5", "q59", "q68", "q88"}


def test_both_parts_are_consistent() -> None:
    corpus = corpus_of([f"q{number}" for number in range(40)]).with_validation(DataSettings(validation_fraction=0.25))
    train, val = corpus.split("train"), corpus.split("val")
    assert (len(train), len(val)) == (30, 10)
    for part in (train, val):
        for row, uid in enumerate(part.uids):
            number = int(uid[1:])
            assert part.texts[row] == f"text of {uid}"
            assert part.positives[row].indices.tolist() == [number]
            assert part.filtered is not None
            assert part.filtered[row].indices.tolist() == [number + 1]
    assert sorted([*train.uids, *val.uids]) == sorted(f"q{number}" for number in range(40))


@pytest.mark.parametrize(("count", "num_val"), [(1, 0), (2, 1), (3, 1), (10, 1), (30, 2)])
def test_tiny_data_keep_both_parts(count: int, num_val: int) -> None:
    assert len(held_out(corpus_of([f"q{number}" for number in range(count)]))) == num_val


@pytest.mark.parametrize("settings", [{"validation_fraction": 0.0}, {"validation_max": 0}])
def test_no_validation(settings: dict[str, Any]) -> None:
    corpus = corpus_of(["a", "b", "c"])
    assert corpus.with_validation(DataSettings(**settings)) is corpus


def test_queries_of_one_uid_stay_together() -> None:
    corpus = corpus_of(["a"] * 5 + ["b"] * 5).with_validation(DataSettings())
    assert set(corpus.split("val").uids) | set(corpus.split("train").uids) == {"a", "b"}
    assert not set(corpus.split("val").uids) & set(corpus.split("train").uids)
    assert held_out(corpus_of(["a"] * 5)) == set()


@given(st.integers(0, 10**6))
def test_no_label_loses_its_last_training_query(seed: int) -> None:
    """The slow way: by rising hash, each query is held out if every label of its has another one left in train."""
    rng = np.random.default_rng(seed)
    pairs = rng.random((60, 12)) < 0.15
    uids = [f"q{number}" for number in range(60)]
    names = [f"l{number}" for number in range(12)]
    corpus = Corpus("made up", Labels(names, names, names), Split(uids, csr_matrix(pairs.astype(np.float32)), uids))
    left, expected = pairs.sum(0), set[str]()
    for row in sorted(
        range(60), key=lambda row: int.from_bytes(blake2b(uids[row].encode(), digest_size=8).digest(), "little")
    ):
        if len(expected) < 12 and all(left[label] > 1 for label in np.flatnonzero(pairs[row])):
            left = left - pairs[row]
            expected.add(uids[row])
    assert len(expected) == 12
    assert held_out(corpus, validation_fraction=0.2) == expected


def test_the_datas_own_validation_is_kept() -> None:
    corpus = corpus_of(["a", "b"], val=corpus_of(["v"]).train)
    assert corpus.with_validation(DataSettings()) is corpus


def test_train_and_validation_come_together_again() -> None:
    whole = corpus_of([f"q{number}" for number in range(40)])
    divided = whole.with_validation(DataSettings())
    again = divided.without_validation()
    assert again.val is None
    train = again.split("train")
    assert sorted(train.uids) == sorted(whole.split("train").uids)
    for row, uid in enumerate(train.uids):
        assert train.positives[row].indices.tolist() == [int(uid[1:])]
        assert train.filtered is not None
        assert train.filtered[row].indices.tolist() == [int(uid[1:]) + 1]
    assert whole.without_validation() is whole


def test_joining_where_one_part_has_no_filter() -> None:
    one = corpus_of(["a"]).split("train")
    other = Split(one.texts, one.positives, one.uids)
    joined = one.joined(other).filtered
    assert joined is not None
    assert joined.toarray().tolist() == [[0, 1], [0, 0]]
    assert other.joined(other).filtered is None


# --- lists ------------------------------------------------------------------------------------------------------------


def test_lists_of_names() -> None:
    corpus = Corpus.from_lists([" x ", "y"], [["red", "blue"], ["blue", "blue"]])
    assert list(corpus.labels.uids) == list(corpus.labels.texts) == ["red", "blue"]
    assert list(corpus.split("train").texts) == ["x", "y"]
    assert corpus.split("train").positives.toarray().tolist() == [[1, 1], [0, 1]]


def test_lists_of_indices() -> None:
    corpus = Corpus.from_lists(["x", "y"], [[np.int64(2)], (0,)], ["same", "same", "other"])
    assert list(corpus.labels.uids) == ["0", "1", "2"]
    assert list(corpus.labels.names) == ["same", "same", "other"]
    assert corpus.split("train").positives.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_names_with_a_mapping_of_texts() -> None:
    corpus = Corpus.from_lists(["x", "y"], [["b"], {"new"}], {"a": "text of a", "b": "text of b"})
    assert list(corpus.labels.names) == ["a", "b", "new"]
    assert list(corpus.labels.texts) == ["text of a", "text of b", "new"]
    assert corpus.split("train").positives.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


def test_names_out_of_a_list_of_texts() -> None:
    corpus = Corpus.from_lists(["x"], [["b"]], ["a", "b"])
    assert list(corpus.labels.uids) == ["a", "b"]
    assert corpus.split("train").positives.toarray().tolist() == [[0, 1]]


def test_rows_with_nothing_are_said() -> None:
    with pytest.warns(DataWarning, match="texts: 3 queries, 1 with no text and 1 with no labels"):
        corpus = Corpus.from_lists(["x", "", "z"], [["a"], ["a"], []])
    assert len(corpus.split("train")) == 3


@pytest.mark.parametrize(
    ("texts", "labels", "label_texts", "sentence"),
    [
        (["x"], [], None, "1 texts but 0 lists of labels"),
        (["x"], ["red"], None, r"labels\[0\] is the text 'red'; expected a list of label names"),
        (["x"], [3], None, r"labels\[0\] is 3; expected a list"),
        (["x"], [[1.5]], ["a"], r"labels\[0\] is \[1.5\]; expected a list"),
        (["x"], [[0]], None, r"labels\[0\] has the number 0; numbers need label_texts"),
        (["x"], [[2]], ["a", "b"], r"labels\[0\] has label 2; expected 0 to 1"),
        (["x"], [[-1]], ["a", "b"], r"labels\[0\] has label -1"),
        (["x"], [["c"]], ["a", "b"], r'labels\[0\] has "c", which is not in label_texts'),
        ([None], [["c"]], None, r"texts\[0\] is None; expected a text"),
        ([""], [["c"]], None, "none of its 1 queries has a text"),
        (["x"], [[]], None, "none of its 1 queries has a label"),
        ([], [], None, "no queries in it"),
    ],
)
def test_broken_lists(texts: Any, labels: Any, label_texts: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Corpus.from_lists(texts, labels, label_texts)
