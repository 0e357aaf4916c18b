from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random

from primexmc.data.pairs import PairsBuilder

ROWS = st.lists(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=6), max_size=8)


@given(ROWS)
def test_a_label_counts_once_a_row_with_its_largest_relevance(rows: list[list[tuple[int, float]]]) -> None:
    builder = PairsBuilder()
    expected = np.zeros((len(rows), 6))
    for number, row in enumerate(rows):
        builder.add_row([label for label, _ in row], [value for _, value in row])
        for label, value in row:
            expected[number, label] = max(expected[number, label], value)
    matrix = builder.finish(6)
    assert matrix.shape == expected.shape
    assert np.array_equal(matrix.toarray(), expected)
    assert matrix.nnz == np.count_nonzero(expected)
    assert matrix.dtype == np.float32
    for number in range(len(rows)):
        indices = matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]].tolist()
        assert indices == sorted(set(indices))


def test_without_relevance_all_is_one() -> None:
    builder = PairsBuilder()
    builder.add_row([2, 0])
    builder.add_row([])
    assert builder.finish(3).toarray().tolist() == [[1, 0, 1], [0, 0, 0]]


def test_whole_matrices_can_be_added() -> None:
    matrix = csr_matrix(random(7, 5, 0.4, random_state=np.random.default_rng(0)))
    builder = PairsBuilder()
    builder.add_row([4])
    builder.add_rows(matrix)
    builder.add_row([1])
    found = builder.finish(5).toarray()
    assert np.allclose(found[1:-1], matrix.toarray())
    assert found[0].tolist() == [0, 0, 0, 0, 1]
    assert found[-1].tolist() == [0, 1, 0, 0, 0]


def test_where_a_label_is_out_of_range() -> None:
    builder = PairsBuilder()
    for row in ([0], [], [1, 7], [9]):
        builder.add_row(row)
    assert builder.row_out_of_range(10) is None
    assert builder.row_out_of_range(8) == (3, 9)
    assert builder.row_out_of_range(7) == (2, 7)


def test_where_a_relevance_is_no_number() -> None:
    builder = PairsBuilder()
    builder.add_row([0], [1.0])
    assert builder.row_of_bad_relevance() is None
    builder.add_row([], [])
    builder.add_row([0, 1], [1.0, -1.0])
    assert builder.row_of_bad_relevance() == (2, -1.0)
    builder = PairsBuilder()
    builder.add_row([0], [float("nan")])
    found = builder.row_of_bad_relevance()
    assert found is not None
    assert found[0] == 0
