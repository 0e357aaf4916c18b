"""Settings that follow from the data."""

from __future__ import annotations

import pytest
from training.cases import corpus_of, make_corpus, split_of

from primexmc.config import Settings
from primexmc.training.derive import RULES, DataShape, derived_settings, shape_of

TATE = DataShape(num_queries=55_000, num_labels=8_000, labels_per_query=5.2, query_bytes=60, label_bytes=20)
TITLES = DataShape(num_queries=2_200_000, num_labels=1_300_000, labels_per_query=22, query_bytes=110, label_bytes=110)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (
            TATE,
            {"data.query_tokens": 16, "data.label_tokens": 16, "prototypes.num_free_vectors": 2666}
            | {"sampling.positives_per_query": 4, "sampling.largest_cluster": 32}
            | {"training.batch_size": 1600, "training.epochs": 20},
        ),
        (
            TITLES,
            {"data.query_tokens": 32, "prototypes.num_free_vectors": 65_536, "sampling.largest_cluster": 1024}
            | {"training.batch_size": 1600, "training.epochs": 20},
        ),
        (
            DataShape(500, 40, 1.2, 4000, 0),
            {"data.query_tokens": 256, "data.label_tokens": 16, "prototypes.num_free_vectors": 13}
            | {"sampling.positives_per_query": 2, "sampling.largest_cluster": 4}
            | {"training.batch_size": 32, "training.epochs": 60},
        ),
    ],
)
def test_rules(shape, expected):
    derived = derived_settings(shape, {})
    assert {key: derived[key] for key in expected} == expected


@pytest.mark.parametrize(
    "shape",
    [DataShape(0, 0, 0, 0, 0), DataShape(1, 1, 1, 1, 1), TATE, TITLES, DataShape(10**8, 10**8, 100, 10**6, 10**6)],
)
def test_every_derived_value_is_a_valid_setting(shape):
    derived = derived_settings(shape, {})
    assert derived.keys() == RULES.keys()
    Settings().with_values(derived, "derived")


@pytest.mark.parametrize(("queries", "static", "transformer"), [(35_000, 20, 45), (100_000, 20, 20), (9_000, 44, 60)])
def test_a_transformer_passes_over_small_data_more_often(queries, static, transformer):
    shape = TATE._replace(num_queries=queries)
    assert derived_settings(shape, {"encoder.name": "static"})["training.epochs"] == static
    assert derived_settings(shape, {"encoder.name": "some/bert"})["training.epochs"] == transformer
    assert "training.epochs" not in derived_settings(shape, {"encoder.name": "some/bert", "training.epochs": 3})


def test_what_was_given_is_not_derived():
    derived = derived_settings(TATE, {"training.epochs": 3, "data.query_tokens": 7})
    assert derived.keys() == RULES.keys() - {"training.epochs", "data.query_tokens"}


def test_the_largest_cluster_is_never_below_a_given_smallest():
    assert (
        derived_settings(DataShape(500, 40, 1, 9, 9), {"sampling.smallest_cluster": 16})["sampling.largest_cluster"]
        == 16
    )


def test_the_shape_of_a_corpus():
    shape = shape_of(make_corpus(60))
    assert (shape.num_queries, shape.num_labels, shape.labels_per_query) == (60, 10, 2.0)
    texts = ["é" * n for n in range(1, 21)]
    shape = shape_of(corpus_of(split_of(texts, [[0], [1, 2, 3], *[[]] * 18])))
    assert shape.labels_per_query == 2.0, "of the queries that have any"
    assert 36 <= shape.query_bytes <= 40, "in bytes, 95 % are no longer"
