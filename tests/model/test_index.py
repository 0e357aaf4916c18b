"""A model's index: in its directory, taken up when it is loaded, told of labels that come and go."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pytest
import torch
from model.test_storage import make_model
from model.tiny import DIM
from retrieval.contract.backends import needs
from scipy.sparse import csr_matrix

from primexmc.cli import about_model, main
from primexmc.config import SearchSettings
from primexmc.data.corpus import Labels
from primexmc.data.texts import Texts
from primexmc.model.centroids import Centroids
from primexmc.model.index import typical_queries, write_index
from primexmc.model.memory import Memory
from primexmc.model.model import PrimeModel
from primexmc.retrieval import kept
from primexmc.retrieval.description import SearchWarning
from primexmc.retrieval.exact import ExactIndex

L = 400


def larger_model(**changes):
    """Of 400 labels."""
    model, rng = make_model(), np.random.default_rng(0)
    names = [f"label {number}" for number in range(L)]
    values = {
        "labels": Labels([str(number) for number in range(L)], names, names),
        "label_counts_L": np.arange(L) % 7,
        "prototypes_LD": torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((L, DIM))).float(), dim=1),
        "centroids": Centroids(torch.from_numpy(rng.standard_normal((L, DIM))).float(), torch.arange(L) % 7 > 0),
    }
    values |= {"memory": None, "lexical": None, "blend": None}
    model = dataclasses.replace(model, **values | changes)
    model.network.free_vector_of_L = torch.zeros(L, dtype=torch.int64)
    return model


@pytest.fixture
def place(tmp_path):
    larger_model().save(tmp_path / "model")
    return tmp_path / "model"


@needs("faiss")
def test_an_index_is_taken_up_and_answers_as_exact_search_does(place, capsys):
    queries = np.random.default_rng(1).standard_normal((30, DIM)).astype(np.float32)
    expected = PrimeModel.load(place).search(queries, 5)
    assert main(["index", str(place), "--backend", "faiss"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("400 labels in ") and "% of the best 100, measured on" in printed
    model = PrimeModel.load(place)
    assert model.index.backend == "faiss"
    found = model.search(queries, 5)
    assert (found[0] == expected[0]).mean() > 0.95
    assert main(["info", str(place)]) == 0 and "  index faiss" in capsys.readouterr().out
    assert main(["index", str(place)]) == 0
    assert "400 labels are searched exactly" in capsys.readouterr().out
    assert PrimeModel.load(place).index.backend == "exact"
    assert [path.name for path in (place / "index").iterdir()] == ["index.json"]


@pytest.mark.parametrize(
    "backend", [pytest.param("faiss", marks=needs("faiss")), pytest.param("milvus", marks=needs("milvus_lite"))]
)
def test_labels_that_come_and_go_are_kept_with_the_model(backend, place):
    main(["index", str(place), "--backend", backend])
    model, rng = PrimeModel.load(place), np.random.default_rng(2)
    queries = rng.standard_normal((20, DIM)).astype(np.float32)
    before = model.search(queries, 1)[0][:, 0]
    model.remove_labels([str(label) for label in set(before[:5].tolist())])
    model.add_labels(["red boat", "old river"])
    model.rename_labels({"100": "dog and horse"})

    def check(changed):
        assert changed.index.backend == backend and len(changed.index) == len(changed.labels)
        expected = ExactIndex(changed.prototypes_LD).search(queries, 5)[0]
        assert (changed.search(queries, 5)[0] == expected).mean() > 0.95
        rows = [len(changed.labels) - 1, list(changed.labels.uids).index("100")]
        assert changed.search(changed.prototypes_LD[rows].numpy(), 1)[0][:, 0].tolist() == rows

    check(model)
    if backend == "milvus":  # its file has changed, the model's directory has not
        model.index.close()
        with pytest.warns(SearchWarning, match="holds other labels than the model"):
            assert PrimeModel.load(place).index.backend == "exact"
    model.save(place)
    check(model)
    model.index.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = PrimeModel.load(place)
    check(again)
    again.index.close()


@needs("faiss")
def test_a_stale_index_is_told_of_and_the_search_is_exact(place):
    main(["index", str(place), "--backend", "faiss"])
    model = larger_model(prototypes_LD=larger_model().prototypes_LD.flip(0))
    model.save(place)
    with pytest.warns(SearchWarning, match=r"index: made for other labels .* Until then the search is exact"):
        again = PrimeModel.load(place)
    assert again.index.backend == "exact"
    assert again.search(model.prototypes_LD[:9].numpy(), 1)[0][:, 0].tolist() == list(range(9))


def test_a_backend_that_is_misspelt(place, capsys):
    assert main(["index", str(place), "--set", "search.backend=fais"]) == 2
    assert 'search.backend is one of auto, exact, faiss, milvus, not "fais". Did you mean "faiss"?' in (
        capsys.readouterr().err
    )
    assert main(["index", str(place / "nowhere")]) == 2


def test_what_an_index_is_measured_on():
    model, N = larger_model(memory=None), 50
    centroids, source = typical_queries(model)
    assert source == "centroids of rare labels" and len(centroids) == L - (L + 6) // 7
    torch.testing.assert_close(centroids.norm(dim=1), torch.ones(len(centroids)))
    rows = torch.arange(L) % 7 > 0
    near = centroids @ torch.nn.functional.normalize(model.centroids.c_LD, dim=1).T
    assert set(near.argmax(dim=1).tolist()) == set(rows.nonzero().squeeze(1).tolist())
    h = torch.nn.functional.normalize(torch.randn(N, DIM), dim=1).half()
    model.memory = Memory(h, csr_matrix((N, L), dtype=np.float32), Texts.of(["text"] * N))
    queries, source = typical_queries(model)
    assert source == "training queries" and queries.shape == (N, DIM) and queries.dtype == torch.float32
    bare = larger_model(memory=None, centroids=Centroids(torch.zeros(L, DIM), torch.zeros(L, dtype=torch.bool)))
    assert typical_queries(bare)[1] == "made-up queries"


def test_an_exact_index_can_be_kept_too(place):
    description = write_index(PrimeModel.load(place), place, SearchSettings(precision="fp32"))
    assert description["backend"] == "exact"
    assert PrimeModel.load(place).index.precision == "fp32"
    assert json.loads((place / "index" / "index.json").read_text())["num_labels"] == L


def test_info_advises_an_index_where_it_is_quicker(place):
    assert about_model.EXACT_BELOW == kept.EXACT_BELOW
    facts = about_model.model_facts(place)
    assert "none: the search is exact\n" in about_model.model_text(facts)
    many = about_model.model_text(facts | {"labels": kept.EXACT_BELOW})
    assert "none: the search is exact; `primexmc index` builds one" in many
