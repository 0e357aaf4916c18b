"""One thread, and an encoder so small that a training takes a tenth of a second."""

from __future__ import annotations

import pytest
import torch
from model.tiny import static_encoder

from primexmc.model.encoder import load_encoder


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def tiny_static(monkeypatch):
    """The embedded table has 30,000 rows; this one 24. Encoders of other names are loaded as ever."""

    def load(settings, directory=None):
        if settings.name == "static":
            return static_encoder(dropout=settings.dropout)
        return load_encoder(settings, directory)

    monkeypatch.setattr("primexmc.training.train.load_encoder", load)
