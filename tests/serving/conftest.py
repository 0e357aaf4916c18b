"""One small model, trained on the shop, and one server that most tests ask."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]")

from e2e.shop import write_shop
from serving.served import serving

from primexmc.cli import main
from primexmc.serving.current import Current


@pytest.fixture(scope="session")
def model_path(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    write_shop(place / "train.csv", 200)
    quick = ["--set", "training.epochs=2", "--set", "training.threads=1", "--quiet"]
    assert main(["train", str(place / "train.csv"), "--out", str(place / "shop"), *quick]) == 0
    return place / "shop"


@pytest.fixture
def own_model(model_path, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(model_path, tmp_path / "shop")


@pytest.fixture(scope="module")
def shop(model_path):
    with serving(Current(model_path, "cpu")) as served:
        yield served
