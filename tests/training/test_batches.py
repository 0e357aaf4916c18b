"""One step's input: queries, labels drawn for them, and who is true for whom."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from model.tiny import static_encoder
from scipy.sparse import csr_matrix
from training.cases import corpus_of, make_corpus, make_phase, quick, split_of

from primexmc.config import Settings
from primexmc.errors import UserError
from primexmc.training.batches import BatchMaker
from primexmc.training.data import prepare
from primexmc.training.loop import _order_queries
from primexmc.training.state import TrainingState

CPU = torch.device("cpu")


@pytest.fixture
def phase():
    return make_phase(make_corpus(50), static_encoder(), quick(sampling__positives_per_query=1))


def decoded(encoder, batch):
    ids, offsets = batch.tokens.ids_T.numpy(), batch.tokens.offsets
    return [encoder.tokenizer.decode(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


def test_a_batch(phase):
    encoder, data = static_encoder(), phase.data
    queries = np.array([3, 41, 7, 20, 11, 12, 13, 14])
    batch = BatchMaker(data, phase.settings, CPU).make(queries, step=5)
    labels = batch.labels_M.tolist()
    assert batch.queries_Q.tolist() == queries.tolist()
    assert len(labels) == len(set(labels)) <= 8, "each label once"
    corpus = make_corpus(50)
    texts = [corpus.train.texts[q] for q in queries] + [corpus.labels.texts[label] for label in labels]
    assert [text.replace(" ,", ",") for text in decoded(encoder, batch)] == texts
    mask = batch.positives.mask_QM.numpy()
    for row, query in enumerate(queries):
        for column, label in enumerate(labels):
            assert mask[row, column] == (data.positives[query, label] != 0), "judged against all labels of the query"
        assert mask[row].any(), "what was drawn for it is among them"
    assert np.array_equal(batch.positives_transposed.mask_QM.numpy(), mask.T)
    assert mask.sum() > len(queries), "labels drawn for others count, too"


def test_the_step_and_the_seed_make_the_draw(phase):
    queries = np.arange(30)

    def labels(step, seed=0):
        settings = phase.settings.with_values({"training.seed": seed}, "test")
        return BatchMaker(phase.data, settings, CPU).make(queries, step).positives.rows_E.tolist()

    assert labels(1) == labels(1)
    assert len({tuple(labels(step)) for step in range(6)}) > 1
    assert len({tuple(labels(1, seed)) for seed in range(6)}) > 1


def fresh_state(phase):
    nothing = np.zeros(0, np.int64)
    bank = torch.zeros(phase.data.num_queries, 2)
    return TrainingState(None, None, None, bank, nothing, nothing, nothing, torch.zeros(3))


@pytest.mark.parametrize("clusters", [False, True])
def test_every_query_once_an_epoch(phase, clusters):
    state = fresh_state(phase)
    if clusters:
        state.cluster_of_N = np.arange(50) // 4
    orders = []
    for epoch in (0, 1):
        state.epoch = epoch
        order, cuts = _order_queries(phase, state)
        batches = np.split(order, cuts)
        assert len(batches) == phase.schedule.steps_per_epoch and max(map(len, batches)) <= 16
        assert sorted(np.concatenate(batches).tolist()) == list(range(50))
        orders.append(order.tolist())
        if clusters:
            assert [len(set(state.cluster_of_N[order[i : i + 2]])) for i in range(0, 48, 4)].count(1) >= 6
    assert orders[0] != orders[1]


def test_a_stream_taken_up_in_the_middle_goes_on_alike(phase):
    maker = BatchMaker(phase.data, phase.settings, CPU)
    order, cuts = _order_queries(phase, fresh_state(phase))
    batches = np.split(order, cuts)
    whole = list(maker.stream(batches, 100))
    assert len(whole) == len(batches) == 4
    for start in range(5):
        rest = list(maker.stream(batches[start:], 100 + start))
        assert len(rest) == 4 - start
        for one, other in zip(whole[start:], rest, strict=True):
            assert torch.equal(one.queries_Q, other.queries_Q) and torch.equal(one.labels_M, other.labels_M)
            assert torch.equal(one.tokens.ids_T, other.tokens.ids_T)
            assert torch.equal(one.positives.columns_E, other.positives.columns_E)


def test_a_stream_that_is_left_early_ends_its_thread(phase):
    import threading

    before = threading.active_count()
    stream = BatchMaker(phase.data, phase.settings, CPU).stream([np.arange(5)] * 20, 0)
    next(stream)
    stream.close()
    assert threading.active_count() == before


def test_an_error_in_the_second_thread_reaches_the_loop(phase):
    with pytest.raises(IndexError):
        list(BatchMaker(phase.data, phase.settings, CPU).stream([np.array([10_000])], 0))


def test_queries_without_text_or_label_are_left_out():
    corpus = corpus_of(split_of(["a boat", "", "a horse", "a dog", ""], [[0], [1], [2], [], []]))
    data = prepare(corpus, corpus.train, static_encoder(), Settings().with_values(quick(), "test"))
    assert data.num_queries == 2 and data.num_labels == 10
    assert data.positives.toarray()[:, :3].tolist() == [[1, 0, 0], [0, 0, 1]]
    counts = np.array([1, 1, 1] + [0] * 7)  # the propensity knows all published queries
    expected = 1 + (np.log(5) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55
    np.testing.assert_allclose(data.inverse_propensity_L, expected)


@pytest.mark.parametrize("rows", [[[], []], [[], [0]]])
def test_nothing_to_train_on_is_an_error(rows):
    corpus = corpus_of(split_of(["a boat", ""], rows))
    with pytest.raises(UserError, match="none of 2 training queries"):
        prepare(corpus, corpus.train, static_encoder(), Settings().with_values(quick(), "test"))


def test_texts_longer_than_the_encoder_reads():
    encoder = static_encoder()
    encoder.max_tokens = 12
    corpus = make_corpus()
    with pytest.raises(UserError, match=r"data\.query_tokens is 16.*at most 12.*data\.query_tokens=12"):
        prepare(corpus, corpus.train, encoder, Settings().with_values(quick(), "test"))


def test_filter_pairs_are_no_negatives():
    corpus = make_corpus(50)
    filtered = np.random.default_rng(0).random(corpus.train.positives.shape) < 0.3
    split = dataclasses.replace(corpus.train, filtered=csr_matrix(filtered.astype(np.float32)))
    phase = make_phase(dataclasses.replace(corpus, train=split), static_encoder(), quick())
    queries = np.array([3, 41, 7, 20, 11, 12, 13, 14])
    batch = BatchMaker(phase.data, phase.settings, CPU).make(queries, step=5)
    here = np.ix_(queries, batch.labels_M.numpy())
    true = split.positives.toarray()[here] > 0
    for built, turned in ((batch.positives, np.asarray), (batch.positives_transposed, np.transpose)):
        assert np.array_equal(built.mask_QM.numpy(), turned(true)), "what is true stays so"
        assert np.array_equal(built.no_negatives.mask_QM.numpy(), turned(true | filtered[here]))
    none = make_phase(corpus, static_encoder(), quick())
    assert BatchMaker(none.data, none.settings, CPU).make(queries, step=5).positives.with_filtered is None
