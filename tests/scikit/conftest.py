"""An encoder so small that a training takes a tenth of a second, for everything in a module."""

from __future__ import annotations

import pytest
from model.tiny import static_encoder


@pytest.fixture(autouse=True, scope="module")
def tiny_static():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "primexmc.training.train.load_encoder",
            lambda settings, directory=None: static_encoder(dropout=settings.dropout),
        )
        yield
