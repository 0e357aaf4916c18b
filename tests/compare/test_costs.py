"""What a step costs, counted from settings, against what a real step does."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare.cases import make_corpus

import primexmc
from primexmc.cli import main
from primexmc.compare import costs as costs_module
from primexmc.compare.compare import costs
from primexmc.compare.costs import costs_table
from primexmc.compare.registry import find_method
from primexmc.data.example import example_path
from primexmc.losses import log_sum_exp
from primexmc.losses.relation import Relation
from primexmc.model.static import StaticEncoder
from primexmc.retrieval.exact import ExactIndex
from primexmc.training import loop
from primexmc.training.train import train

VALUES = {
    "training.epochs": 2,
    "training.batch_size": 32,
    "training.device": "cpu",
    "training.validate_every": 0,
    "sampling.positives_per_query": 1,
    "sampling.pool_size": 5,
    "sampling.mining": 0.5,
    "data.query_tokens": 16,
    "data.label_tokens": 16,
}
METHODS = ["prime", "prime-lite", "prime-softmax", "ngame", "dexa", "dpr", "ance", "dexml", "dexml-pool", "dexml-batch"]


class Counter:
    """Texts through the encoder and inner products, during steps and outside of them."""

    def __init__(self, monkeypatch):
        self.steps, self.outside, self.now = [], {"texts": 0, "products": 0}, None
        forward, step, search, logits = StaticEncoder.forward, loop._step, ExactIndex.search, log_sum_exp._logits
        matrix = Relation.__dict__["matrix_QM"].func

        def counted_matrix(relation):
            if "counted" not in relation.__dict__:
                relation.__dict__["counted"] = matrix(relation)
                if relation.turned is None:
                    self.add("products", relation.rows_QD.shape[0] * relation.columns_MD.shape[0])
            return relation.__dict__["counted"]

        def counted_forward(encoder, batch):
            self.add("texts", len(batch))
            return forward(encoder, batch)

        def counted_logits(rows, columns, *rest):
            self.add("products", len(rows) * len(columns))
            return logits(rows, columns, *rest)

        def counted_step(phase, state, objective, batch):
            self.now = {"texts": 0, "products": 0, "queries": len(batch.queries_Q), "labels": len(batch.labels_M)}
            step(phase, state, objective, batch)
            self.steps.append(self.now)
            self.now = None

        def counted_search(index, h, *rest):
            self.add("products", len(h) * len(index))
            return search(index, h, *rest)

        monkeypatch.setattr(StaticEncoder, "forward", counted_forward)
        monkeypatch.setattr(Relation, "matrix_QM", property(counted_matrix))
        monkeypatch.setattr(log_sum_exp, "_logits", counted_logits)
        monkeypatch.setattr(loop, "_step", counted_step)
        monkeypatch.setattr(ExactIndex, "search", counted_search)

    def add(self, what, count):
        place = self.outside if self.now is None else self.now
        place[what] += count


@pytest.mark.parametrize("in_parts", [False, True], ids=["", "in parts"])
@pytest.mark.parametrize("name", METHODS)
def test_a_real_step(name, in_parts, monkeypatch):
    if in_parts:
        for module in (log_sum_exp, costs_module):
            monkeypatch.setattr(module, "CELLS_AT_ONCE", {"cpu": 50, "cuda": 50})
    corpus = make_corpus()
    (counted,) = costs(corpus, [name], preset="static-cpu", settings=VALUES).values()
    settings = find_method(name).resolved(corpus, "static-cpu", VALUES)
    counter = Counter(monkeypatch)
    train(corpus, "static-cpu", settings.to_dict(), quiet=True)
    first = counter.steps[0]
    assert counted["queries_a_step"] == first["queries"]
    if name == "ance":  # the first step comes before the first search; those of the second epoch have mined labels
        assert counted["labels_a_step"] >= first["labels"]
        assert counted["search_products_a_step"] == pytest.approx(len(corpus.train) * 12 / 3, abs=1)
        return
    assert counted["labels_a_step"] == first["labels"]
    assert counted["texts_a_step"] == first["texts"]
    assert counted["products_a_step"] == first["products"]


def test_all_labels_and_a_pool():
    found = costs(make_corpus(), METHODS, preset="static-cpu", settings=VALUES)
    assert found["dexml"]["labels_a_step"] == 12 >= found["dexml-pool"]["labels_a_step"]
    Q = found["dexml"]["queries_a_step"]
    assert found["dexml"]["texts_a_step"] == 2 * (Q + 12), "encoded twice, so that little is kept"
    assert found["prime"]["products_a_step"] == 2 * Q * found["prime"]["labels_a_step"], "prototypes and texts"
    assert found["prime-lite"]["queries_a_step"] < Q


def test_the_table():
    lines = costs_table({"a": {"queries_a_step": 1000, "products_a_step": 5}, "b": {"queries_a_step": 2}}).splitlines()
    assert lines[0].split() == ["a", "step", "queries", "products"] and lines[1].split() == ["a", "1,000", "5"]


def test_on_the_command_line(tmp_path, capsys):
    (tmp_path / "train.csv").write_text("text,labels\n" + "a boat,boat\na house,house\n" * 20, encoding="utf-8")
    (tmp_path / "test.csv").write_text("text,labels\na boat,boat\n", encoding="utf-8")
    words = ["compare", str(tmp_path), "--methods", "prime,dexml,popularity", "--costs", "--preset", "static-cpu"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["a", "prime", "dexml"] and not (tmp_path / "out").exists()
    assert main(["compare", str(tmp_path), "--costs"]) == 2


def test_the_docs_have_todays_numbers():
    """docs/compare.md's table of the embedded example."""
    settings = {"training.device": "cpu"}
    shown = costs_table(costs(example_path(), recipe="field", preset="static-cpu", settings=settings))
    page = (Path(primexmc.__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    for line in shown.splitlines():
        assert line.rstrip() in page, line
