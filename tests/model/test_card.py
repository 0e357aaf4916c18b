"""The model card says what the model is, and leaves a card of somebody's alone."""

from __future__ import annotations

from model.test_storage import make_model

from primexmc.model.calibration import Calibration
from primexmc.model.model import PrimeModel


def card_of(model, tmp_path):
    model.save(tmp_path / "model")
    return (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_it_says_what_the_model_knows_of_itself(tmp_path):
    model = make_model(**{"training.epochs": 7})
    model.facts = {"corpus": "made up", "validation": {"P@1": 12.53, "nDCG@5": 40.0}}
    card = card_of(model, tmp_path)
    assert '77 training queries of "made up"; 8 labels, 1 of them without a training query.' in card
    assert "| P@1 | nDCG@5 |" in card and "| 12.5 | 40.0 |" in card and "Probabilities" not in card
    assert "training.epochs = 7" in card and "memory.safetensors holds the texts" in card
    assert "first 64 tokens" in card and "licence of the training data is not known" in card
    told = {"queries": 1234, "error_at_1": 3.21, "error_at_5": 1.5}
    model.calibrations = {"theta": Calibration((0.0,) * 6, told)}
    assert "fitted on 1,234 validation queries; their calibration error on held-out folds is 3.2" in card_of(
        model, tmp_path
    )


def test_a_model_that_was_not_measured_says_so(tmp_path):
    model = make_model(**{"encoder.name": "somebody/encoder"})
    model.facts, model.memory = {}, None
    card = card_of(model, tmp_path)
    assert "nothing was measured" in card and "memory.safetensors" not in card
    assert "somebody/encoder; its licence is not known" in card


def test_a_card_that_somebody_has_written_stays(tmp_path):
    model = make_model()
    card_of(model, tmp_path)
    (tmp_path / "model" / "README.md").write_text("# Our model", encoding="utf-8")
    assert card_of(PrimeModel.load(tmp_path / "model", device="cpu"), tmp_path) == "# Our model"
    (tmp_path / "model" / "README.md").unlink()
    assert "# made up" in card_of(model, tmp_path)
