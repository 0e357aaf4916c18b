from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer

from primexmc.config import DataSettings
from primexmc.data.corpus import Corpus, Labels, Split
from primexmc.data.facts import data_facts, fact_lines
from primexmc.data.frequency import frequency_buckets


def split_of(texts: list[str], labels: list[list[int]], num_labels: int, uids: list[str] | None = None) -> Split:
    dense = np.zeros((len(texts), num_labels), dtype=np.float32)
    for row, row_labels in enumerate(labels):
        dense[row, row_labels] = 1
    return Split(texts, csr_matrix(dense), uids or [str(row) for row in range(len(texts))])


NAMES = ["Red", "dark green", "blue", "blue", ""]


@pytest.fixture
def corpus() -> Corpus:
    train = split_of(["a RED thing", "greens", "", "a RED thing", "is dark-green!"], [[0, 2], [1], [0], [0], [1]], 5)
    test = split_of(["a RED thing", "blue"], [[0], [2, 4]], 5)
    return Corpus("made up", Labels(list("01234"), NAMES, NAMES), train=train, test=test)


def test_counts(corpus: Corpus) -> None:
    facts = data_facts(corpus)
    json.dumps(facts)
    assert facts["labels"] == {"count": 5, "without_text": 1, "sharing_a_name": 2}
    train = facts["splits"]["train"]
    assert (train["queries"], train["pairs"], train["filter_pairs"]) == (5, 6, 0)
    assert train["labels_per_query"] == {"mean": 1.2, "median": 1.0, "most": 2}
    assert (train["without_text"], train["without_labels"], train["duplicate_texts"]) == (1, 0, 1)
    assert train["share_naming_a_label"] == pytest.approx(3 / 5)
    assert facts["texts_also_in_train"] == {"test": 1}
    assert facts["queries_per_label"]["never_trained"] == 2
    assert "tokens" not in facts


def test_frequencies_by_equal_shares_of_the_pairs() -> None:
    """Nine pairs, three a bucket: the label that the first third ends in is head."""
    counts = [3, 1, 2, 1, 1, 1, 0]
    assert frequency_buckets(counts).tolist() == [0, 1, 1, 2, 2, 2, 2]
    labels = [[label] for label, count in enumerate(counts) for _ in range(count)]
    train = split_of([f"t{row}" for row in range(9)], labels, 7)
    names = [f"n{row}" for row in range(7)]
    facts = data_facts(Corpus("x", Labels(names, names, names), train=train))["queries_per_label"]
    assert facts["head"] == {"labels": 1, "least": 3}
    assert facts["torso"] == {"labels": 2, "least": 1}
    assert facts["tail"] == {"labels": 3, "least": 1}
    assert facts["never_trained"] == 1


def test_reverse_pairs_by_uid() -> None:
    """Test (p, q) and (p, r); train holds (q, p) only."""
    labels = Labels(["p", "q", "r"], ["n1", "n2", "n3"], ["n1", "n2", "n3"])
    train = split_of(["x", "y"], [[0], [1]], 3, ["q", "r"])
    test = split_of(["z"], [[1, 2]], 3, ["p"])
    facts = data_facts(Corpus("x", labels, train=train, test=test))
    assert facts["reverse_pairs_in_train"] == 0.5


def test_reverse_pairs_by_text() -> None:
    labels = Labels(["0", "1", "2"], ["n1", "n2", "n3"], ["page p", "page q", "page r"])
    train = split_of(["page q", "page r"], [[0], [0]], 3)
    test = split_of(["page p", "else"], [[1, 2], [0]], 3)
    facts = data_facts(Corpus("x", labels, train=train, test=test))
    assert facts["reverse_pairs_in_train"] == pytest.approx(2 / 3)


def test_row_numbers_are_no_identity(corpus: Corpus) -> None:
    labels = Labels(["0", "1"], ["a", "b"], ["a", "b"])
    train, test = split_of(["x", "y"], [[1], [0]], 2), split_of(["z"], [[1]], 2)
    assert data_facts(Corpus("x", labels, train=train, test=test))["reverse_pairs_in_train"] is None


def test_lengths_in_tokens(corpus: Corpus, tokenizer: Tokenizer) -> None:
    """With [CLS] and [SEP]: 5, 3, 2, 5 and 7 tokens."""
    tokens = data_facts(corpus, tokenizer, DataSettings(query_tokens=4, label_tokens=9))["tokens"]["queries"]
    assert tokens["p50"] == 5
    assert tokens["p100"] == 7
    assert tokens["mean"] == pytest.approx(22 / 5)
    assert tokens["cut_share"] == pytest.approx(3 / 5)


def test_as_lines(corpus: Corpus, tokenizer: Tokenizer) -> None:
    lines = fact_lines(data_facts(corpus, tokenizer))
    assert lines[0] == "made up: 5 labels, 1 without text, 2 sharing a name"
    assert lines[1] == "train: 5 queries, 6 pairs"
    assert "test texts that are also in train: 1 (50.0%)" in lines
    assert all("\n" not in line and len(line) < 200 for line in lines)


def test_a_test_file_alone(corpus: Corpus) -> None:
    alone = Corpus("x", corpus.labels, test=corpus.test)
    facts = data_facts(alone)
    assert "queries_per_label" not in facts
    assert fact_lines(facts)[1] == "test: 2 queries, 3 pairs"
