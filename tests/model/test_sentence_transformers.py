"""A trained encoder is one for sentence-transformers, too. Skipped where that library is not installed."""

from __future__ import annotations

import numpy as np
import pytest
from model.test_storage import make_model
from model.tiny import KINDS, random_texts, save_hugging_face

from primexmc.config import EncoderSettings
from primexmc.model.encoder import load_encoder

TEXTS = ["", "boat", *random_texts(0, 20), "red boat " * 30, "castle, " * 40]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_it_embeds_identically(tmp_path, kind, pooling):
    library = pytest.importorskip("sentence_transformers")
    source = save_hugging_face(tmp_path / "source", kind)
    values = {"encoder.name": str(source), "encoder.pooling": pooling, "data.query_tokens": 20}
    if kind == "e5":
        values |= {"encoder.query_prefix": "query: ", "encoder.label_prefix": "passage: "}
    encoder = load_encoder(EncoderSettings(name=str(source), pooling=pooling))
    model = make_model(encoder=encoder, **values)
    model.save(tmp_path / "model")
    theirs = library.SentenceTransformer(str(tmp_path / "model" / "encoder"), device="cpu")
    assert theirs.max_seq_length == 20
    np.testing.assert_allclose(theirs.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
