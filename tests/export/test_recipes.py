"""The recipes of docs/export.md that need no server, as they are written there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from model.test_storage import NUM_LABELS, make_model

from primexmc.export.export import export

DOCS = Path(__file__).parents[2] / "docs" / "export.md"
QUERY = "wireless mouse with usb receiver"


def recipes():
    """The code of each, by the package that it is for."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {
        re.search(r"(?:from|import) (\w+)", block.replace("import json, numpy as np, ", "import "))[1]: block
        for block in blocks
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_recipe_runs(tmp_path, monkeypatch, capsys):
    for package in ("sentence_transformers", "onnxruntime", "pymilvus", "milvus_lite", "pyarrow"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    model, found = make_model(), recipes()
    for to, place in re.findall(r"--to (\S+) --out (\S+)$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        export(model, to, place)
    names, said = {}, capsys.readouterr().out
    assert said == "", "whoever exports says what it did"
    for package in ("sentence_transformers", "onnxruntime", "pymilvus", "pyarrow"):
        exec(found[package], names)
        if package != "pyarrow":
            np.testing.assert_allclose(names["vector"], model.encode([QUERY])[0], atol=1e-5)
    lines = capsys.readouterr().out.split("\n")[:-1]  # a label has a line separator in its name
    best = model.predict([QUERY], 5)[0]
    assert len(lines) == 5, lines
    assert float(lines[0].split()[0]) == pytest.approx(best[0].score, abs=1e-5)
    np.testing.assert_array_equal(names["vectors"], model.prototypes_LD)
    assert len(names["table"]) == NUM_LABELS


def test_the_recipes_that_need_a_server_are_python():
    for package, code in recipes().items():
        compile(code, package, "exec")
    assert {"qdrant_client", "psycopg", "opensearchpy"} <= recipes().keys()
