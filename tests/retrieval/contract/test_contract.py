"""What every index promises, whatever searches behind it: compared with a full sort in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from retrieval.contract.backends import BACKENDS, D, brute_force, unit, world
from scipy.sparse import csr_matrix

from primexmc.errors import UserError

pytestmark = pytest.mark.parametrize("name", BACKENDS)


def assert_true_answers(ids, scores, z, h, top, banned=(), recall=0.95):
    """Scores are the labels' inner products, falling, ties by rising id; nearly all of the best are there."""
    expected_ids, expected_scores = brute_force(z, h, top, banned)
    assert ids.shape == scores.shape == (len(h), top) and ids.dtype == np.int64 and scores.dtype == np.float32
    for row in range(len(h)):
        found = ids[row][ids[row] >= 0]
        assert len(set(found.tolist())) == len(found) == (expected_ids[row] >= 0).sum()
        assert not {(row, label) for label in found.tolist()} & set(banned)
        np.testing.assert_allclose(scores[row][: len(found)], z[found].astype(float) @ h[row], atol=1e-6)
        order = sorted(zip(-scores[row][: len(found)], found, strict=True))
        assert [label for _, label in order] == found.tolist()
    assert np.isneginf(scores[ids < 0]).all()
    near = (scores >= expected_scores[:, -1:] - 1e-6)[expected_ids >= 0]
    assert near.mean() >= recall if near.size else True


def test_finds_the_nearest(name, make):
    z, h = world()
    assert_true_answers(*make(name, z).search(h, 10), z, h, 10)


def test_vectors_of_many_lengths(name, make):
    """Mixed prototypes and those of added labels are shorter than 1: what counts is the product, not the angle."""
    z, h = world()
    z *= np.random.default_rng(1).uniform(0.6, 1, (len(z), 1)).astype(np.float32)
    assert_true_answers(*make(name, z).search(h, 10), z, h, 10)


def test_more_answers_than_labels(name, make):
    z, h = world(40, 3)
    assert_true_answers(*make(name, z).search(h, 60), z, h, 60, recall=1)


def test_one_label(name, make):
    z, h = world(1, 2)
    index = make(name, z)
    assert_true_answers(*index.search(h, 1), z, h, 1, recall=1)
    assert_true_answers(*index.search(h, 3), z, h, 3, recall=1)
    assert len(index) == 1


def test_labels_with_the_same_vector(name, make):
    z, h = world(30, 4)
    z = np.repeat(z, 4, axis=0)
    index = make(name, z)
    assert_true_answers(*index.search(h, 8), z, h, 8)
    ids, _ = index.search(h, 120)
    assert all(ids[row, place : place + 4].tolist() == sorted(ids[row, place : place + 4]) for row in range(4)
               for place in range(0, 120, 4))  # fmt: skip


def test_no_queries(name, make):
    ids, scores = make(name, world()[0]).search(np.empty((0, D), np.float32), 5)
    assert ids.shape == scores.shape == (0, 5)


def test_scores_are_cosines_where_vectors_have_length_1(name, make):
    z, _ = world(300)
    ids, scores = make(name, z).search(z[:50], 3)
    assert (ids[:, 0] == np.arange(50)).mean() >= 0.98
    np.testing.assert_allclose(scores[ids == np.arange(50)[:, None]], 1, atol=1e-6)
    assert np.abs(scores).max() <= 1 + 1e-6


def test_filtered_pairs_never_come_back(name, make):
    z, h = world()
    best, _ = brute_force(z, h, 30)
    banned = {(row, int(label)) for row in range(len(h)) for label in best[row, : 2 * row : 2]}
    rows, labels = zip(*banned, strict=True)
    values = np.r_[np.ones(len(rows)), 0]  # the last is written down, but nothing
    filtered = csr_matrix((values, (np.r_[rows, 0], np.r_[labels, best[0, 0]])), shape=(len(h), len(z)))
    assert_true_answers(*make(name, z).search(h, 10, filtered), z, h, 10, banned)


def test_all_labels_filtered(name, make):
    z, h = world(600, 2)
    ids, scores = make(name, z).search(h, 4, csr_matrix(np.ones((2, 600))))
    assert (ids == -1).all() and np.isneginf(scores).all()


def test_labels_that_are_added_are_found(name, make):
    z, h = world()
    more = np.concatenate([unit(h + 0.05), world(30, 1, seed=5)[0]])
    index = make(name, z)
    index.add(more)
    z = np.concatenate([z, more])
    assert len(index) == len(z) == len(index.z_LD)
    assert_true_answers(*index.search(h, 10), z, h, 10)
    assert set(range(600, 620)) <= set(index.search(h, 10)[0].ravel().tolist())


def test_labels_that_are_removed_are_gone_and_the_others_move_up(name, make):
    z, h = world()
    index, kept = make(name, z), np.ones(600, bool)
    for _ in range(3):  # the best of every query, and the best of what is left
        ids, _ = index.search(h, 1)
        index.remove(ids[:, 0])
        kept[np.flatnonzero(kept)[ids[:, 0]]] = False
        assert len(index) == kept.sum()
        assert_true_answers(*index.search(h, 10), z[kept], h, 10)
    index.rebuild()
    assert_true_answers(*index.search(h, 10), z[kept], h, 10)


def test_more_changes_than_labels(name, make):
    z, h = world(200)
    index = make(name, z)
    index.remove(range(100))
    index.add(z[:50])
    index.remove([])
    z = np.concatenate([z[100:], z[:50]])
    assert_true_answers(*index.search(h, 10), z, h, 10)
    index.remove(range(150))
    assert len(index) == 0 and (index.search(h, 3)[0] == -1).all()
    index.add(z)
    assert_true_answers(*index.search(h, 10), z, h, 10)


def old_z_of(index):
    return index.z_LD.numpy().copy()


def test_follows_labels_wherever_they_go(name, make):
    z, h = world()
    index, rng = make(name, z), np.random.default_rng(7)
    for _ in range(2):  # some go, some come, all change places; there are copies, too
        kept = rng.permutation(len(z))[: len(z) - 20]
        z = np.concatenate([z[kept[:300]], world(15, 1, seed=8)[0], z[kept[300:]], z[kept[:5]]])
        old_z, old_index, index = old_z_of(index), index, index.follow(torch.from_numpy(z))
        assert_true_answers(*old_index.search(h, 10), old_z, h, 10, recall=0.8)
        assert len(index) == len(z)
        assert_true_answers(*index.search(h, 10), z, h, 10)


def test_saved_and_loaded_it_answers_alike(name, make, tmp_path):
    z, h = world()
    index = make(name, z)
    index.remove([3, 4, 599])
    index.add(z[:7])
    z = np.concatenate([np.delete(z, [3, 4, 599], axis=0), z[:7]])
    before = index.search(h, 10)
    directory = index.directory if name == "milvus embedded" else tmp_path / "saved"
    directory.mkdir(exist_ok=True)
    facts = index.save(directory)
    assert not {path.suffix for path in tmp_path.rglob("*")} & {".pkl", ".pickle", ".pt"}
    loaded = make.load(name, directory, z, facts)
    after = loaded.search(h, 10)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])
    loaded.remove([0])
    assert_true_answers(*loaded.search(h, 10), z[1:], h, 10)


def test_a_query_is_answered_alike_alone_and_in_a_batch(name, make):
    z, h = world()
    index = make(name, z)
    ids, _ = index.search(h, 10)
    alone = np.concatenate([index.search(h[row : row + 1], 10)[0] for row in range(len(h))])
    assert (ids == alone).mean() >= (1 if "hnsw" not in name else 0.98)


def test_what_is_no_vector_is_refused(name, make):
    z, h = world(200, 3)
    index, broken = make(name, z), h.copy()
    broken[1, 2] = np.nan
    for action in (lambda: index.search(broken, 3), lambda: index.add(broken), lambda: make(name, broken)):
        with pytest.raises(UserError, match="vector 1 holds NaN or infinity"):
            action()
    with pytest.raises(UserError, match=f"vectors of {D} dimensions"):
        index.search(h[:, :5], 3)
    with pytest.raises(UserError, match="there is no label 200 to remove"):
        index.remove([1, 200])
    assert len(index) == 200
