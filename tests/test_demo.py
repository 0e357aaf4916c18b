"""The demo, on a corpus so small that it takes seconds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from primexmc.data.corpus import Corpus, Labels, Split
from primexmc.demo import NUM_SHOWN, run_demo
from primexmc.model.model import PrimeModel
from primexmc.training.saver import Interrupted

THINGS = ["boat", "river", "horse", "tree", "castle", "bridge", "church", "mountain", "dog", "ship"]


def make_split(seed, size):
    """Texts that name what they show."""
    rng = np.random.default_rng(seed)
    shown = [sorted(rng.choice(len(THINGS), 3, replace=False).tolist()) for _ in range(size)]
    texts = [f"a painting of {', '.join(THINGS[thing] for thing in things)}" for things in shown]
    indptr = np.arange(0, 3 * size + 1, 3)
    positives = csr_matrix((np.ones(3 * size, np.float32), np.concatenate(shown), indptr), shape=(size, len(THINGS)))
    return Split(texts, positives, [f"{seed}-{row}" for row in range(size)])


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out, said = tmp_path_factory.mktemp("demo") / "deep" / "demo", []
    corpus = Corpus("made up", Labels(THINGS, THINGS, THINGS), train=make_split(0, 120), test=make_split(1, 40))
    summary = run_demo(
        out, corpus=corpus, settings={"training.epochs": 3, "data.validation_fraction": 0.2}, say=said.append
    )
    return out, summary, "\n".join(said)


def test_it_writes_model_numbers_and_page(demo):
    out, summary, _ = demo
    assert json.loads((out / "evaluation.json").read_text(encoding="utf-8")) == json.loads(json.dumps(summary))
    assert summary["queries"] == 40 and summary["train_s"] > 0
    assert list(summary["baselines"]) == ["nearest neighbours by tf-idf", "popularity", "untrained encoder"]
    assert all(0 <= result["P@1"] <= 100 for result in (summary, *summary["baselines"].values()))
    assert len(PrimeModel.load(out / "model", device="cpu").predict(["a painting of a boat"])[0]) == 5
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"right for {summary['P@1']:.1f} %" in page and "polyline" in page and "a painting of" in page


def test_it_prints_a_table_and_five_predictions(demo):
    _, summary, said = demo
    lines = said.splitlines()
    assert any(line.startswith("PRIME") and f"{summary['P@1']:.1f}" in line for line in lines)
    assert sum(line.startswith("a painting of") for line in lines) == NUM_SHOWN
    assert any(line.startswith("  ✓") for line in lines)


def test_it_can_run_again_in_the_same_place(demo):
    out, summary, _ = demo
    corpus = Corpus("made up", Labels(THINGS, THINGS, THINGS), train=make_split(0, 120), test=make_split(1, 40))
    again = run_demo(out, corpus=corpus, settings={"training.epochs": 1}, say=lambda _: None)
    assert again["queries"] == summary["queries"]
    rows = (out / "model" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert max(json.loads(row)["epoch"] for row in rows) == 1, "the log is of the last run alone"


def test_ctrl_c_promises_nothing_that_the_demo_cannot_do(tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise Interrupted("stopped after step 3. `--resume` continues from step 3.")

    monkeypatch.setattr("primexmc.demo.train", stopped)
    with pytest.raises(Interrupted, match="begins anew") as caught:
        run_demo(tmp_path / "demo")
    assert "--resume" not in str(caught.value)
