"""Whatever the OpenAPI document allows, and much that it does not, is tried: no 5xx, and no answer it does not name."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from serving.served import serving

from primexmc.serving.current import Current

schemathesis = pytest.importorskip("schemathesis")
OURS = {"/predict", "/explain", "/labels", "/labels/{id}", "/labels/{id}/neighbours", "/labels/remove", "/reload"}
STATE = {"/health", "/ready", "/info", "/learning", "/examples", "/metrics"}


@pytest.fixture(scope="module")
def changing(model_path, tmp_path_factory):
    """A server that may be changed and reloaded."""
    import shutil

    path = shutil.copytree(model_path, tmp_path_factory.mktemp("fuzzed") / "shop")
    with serving(Current(path, "cpu"), aside_requests=100) as served:
        yield served


NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)
schemathesis.checks.load_all_checks()
CHECKS = [schemathesis.checks.CHECKS.get_one(name) for name in NAMES]


def test_no_answer_is_a_surprise(changing):
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{changing.port}/openapi.json")
    tried = []
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode:
            try_it(operation, mode, tried)
    assert {path for path, _ in tried} == OURS | STATE
    assert {200, 400, 404} <= {status for _, status in tried}, "right and wrong questions were asked"


def try_it(operation, mode, tried):
    @hypothesis.settings(
        max_examples=15,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        response = case.call()
        tried.append((operation.path, response.status_code))
        case.validate_response(response, checks=CHECKS)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        assert mode == schemathesis.GenerationMode.NEGATIVE, "nothing can be wrong with a path that takes nothing"


def test_the_document_tells_all_of_it(shop):
    document = shop.ask("GET", "/openapi.json")[1]
    assert set(document["paths"]) == OURS | STATE
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            assert "422" not in operation["responses"] and {"400", "401", "429"} <= set(operation["responses"])
    assert "ValidationError" not in json.dumps(document)
