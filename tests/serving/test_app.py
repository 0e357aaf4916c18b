"""The server over a real socket: what is asked, what is answered, what is refused, what is logged."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading

import numpy as np
import pytest
from serving.served import serving, wait_for

from primexmc.data.frequency import BUCKETS, frequency_buckets
from primexmc.model.model import PrimeModel
from primexmc.serving.current import Current
from primexmc.serving.keys import Keys

TEXTS = ["red kettle and a saucepan", "usb adapter", "Guitar, violin"]
ODD = {
    "empty": "",
    "blank": " \t\n ",
    "control characters": "kettle\x00\x01\x1b[31m\x7f\u200b\u202e\ufeff",
    "another script": "赤いやかん и кастрюля غلاية",
    "emoji": "🫖" * 50,
    "half a surrogate pair": "kettle \ud83e",
    "both halves apart": "\udd16 \ud83e",
    "enormous": "kettle " * 14_000,
    "one enormous word": "k" * 100_000,
    "marks on marks": "e" + "\u0301" * 5000,
    "not characters": "\ufffe\uffff\U0010ffff",
}


@pytest.fixture(scope="module")
def model(model_path):
    return PrimeModel.load(model_path, "cpu")


def test_predict_is_what_the_model_says(shop, model):
    for found, expected in zip(shop.predict(*TEXTS, top=3), model.predict(TEXTS, 3), strict=True):
        assert [(one["label"], one["uid"], one["id"]) for one in found] == [one[:3] for one in expected]
        assert [one["score"] for one in found] == pytest.approx([one.score for one in expected], abs=2e-6)
        assert set(found[0]) == {"label", "uid", "id", "score"}
    assert [len(labels) for labels in shop.predict("x kettle")] == [5]
    assert shop.predict() == [] and shop.predict("", " ") == [[], []]
    assert len(shop.predict("kettle", top=1000)[0]) == len(model.labels)


def test_what_curl_sends_without_a_content_type(shop):
    status, answer, _ = shop.ask("POST", "/predict", b'{"texts": ["kettle"], "top": 1}')
    assert status == 200 and len(answer["results"][0]["labels"]) == 1


def test_extras_of_predict(shop, model):
    (everything,) = shop.predict("kettle", top=12, details=True)
    buckets = [BUCKETS[bucket] for bucket in frequency_buckets(model.label_counts_L)]
    for one in everything:
        assert (one["train_queries"], one["bucket"]) == (model.label_counts_L[one["id"]], buckets[one["id"]])
    middle = everything[5]["score"] - 2e-6  # answers have six digits
    (best,) = shop.predict("kettle", top=12, min_score=middle)
    assert [one["uid"] for one in best] == [one["uid"] for one in everything[:6]]
    (others,) = shop.predict("kettle", top=4, without=[everything[0]["uid"], everything[2]["uid"], "unknown"])
    assert [one["uid"] for one in others] == [everything[at]["uid"] for at in (1, 3, 4, 5)]


def test_probabilities(shop, model):
    (labels,) = shop.predict("red kettle", top=3, probability=True)
    expected = model.probabilities(model.predict(["red kettle"], 3))[0]
    assert [one["probability"] for one in labels] == pytest.approx(expected, abs=1e-4)


def test_probabilities_of_a_model_without(model_path):
    current = Current(model_path, "cpu")
    current.generation.model.calibrations = {}
    with serving(current) as served:
        status, answer, _ = served.post("/predict", texts=["kettle"], probability=True)
        assert status == 400 and "no calibrated probabilities" in answer["error"]


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts_get_an_answer(shop, text):
    (labels,) = shop.predict(text)
    assert all(math.isfinite(one["score"]) for one in labels)
    status, why, _ = shop.post("/explain", text=text, id=0)
    assert status == 200 and math.isfinite(why["score"])
    assert shop.post("/explain", text="kettle", uid=text[:1000] or "x")[0] in {400, 404}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "expected a JSON object"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "expected a JSON object"),
        ('{"top": 3}', "texts: field required"),
        ('{"texts": "abc"}', "texts: input should be a valid list"),
        ('{"texts": ["a", 1]}', "texts[1]: input should be a valid string"),
        ('{"texts": ["a"], "top": 0}', "top: "),
        ('{"texts": ["a"], "top": 1001}', "top: "),
        ('{"texts": ["a"], "top": true}', "top: "),
        ('{"texts": ["a"], "top": 2.5}', "top: "),
        ('{"texts": ["a"], "top": "2"}', "top: "),
        ('{"texts": ["a"], "top": 1' + "0" * 5000 + "}", ""),
        ('{"texts": ["a"], "min_score": NaN}', "min_score: "),
        ('{"texts": ["a"], "tpo": 3}', "a field that is not known"),
        ('{"texts": ["a"], "\\ud800": 3}', ""),
        (json.dumps({"texts": ["a"] * 1025}), "texts: "),
        (json.dumps({"texts": ["a" * 100_001]}), "texts[0]: "),
        (json.dumps({"texts": ["a"] * 200, "top": 1000}), "texts times top is at most 100,000"),
    ],
)
def test_bad_questions(shop, body, sentence):
    status, answer, _ = shop.ask("POST", "/predict", body)
    assert status == 400 and sentence in answer["error"] and list(answer) == ["error"]


def test_other_paths_and_methods(shop):
    for method, path, status in (("GET", "/secret", 404), ("GET", "/predict", 405), ("DELETE", "/health", 405)):
        found, answer, _ = shop.ask(method, path)
        assert found == status and "/docs" in answer["error"]
    assert shop.ask("BREW", "/predict")[0] == 405
    status, content, headers = shop.ask("HEAD", "/health")
    assert (status, content) == (200, b"") and headers["Content-Length"] == "15"


def test_the_size_of_a_body(model_path):
    with serving(Current(model_path, "cpu"), body_bytes=1000) as served:
        large = json.dumps({"texts": ["a" * 1000]}).encode()
        assert served.ask("POST", "/predict", large)[0] == 413
        assert served.ask("POST", "/predict", headers={"Content-Length": "9" * 15})[0] == 413
        chunks = (large[start : start + 100] for start in range(0, len(large), 100))
        assert (
            served.ask("POST", "/predict", chunks, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})[0]
            == 413
        ), "a body that does not tell its length"
        small = iter([b'{"texts"', b': ["kettle"]}'])
        status, answer, _ = served.ask(
            "POST", "/predict", small, encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
        )
        assert status == 200 and answer["results"][0]["labels"]


def test_a_body_that_does_not_come(model_path):
    with serving(Current(model_path, "cpu"), body_s=0.1) as served:
        assert served.ask("POST", "/predict", b"{", headers={"Content-Length": "100"})[0] == 408
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
            client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert b" 400 " in client.recv(1000), "no HTTP at all"
        assert served.ask("GET", "/health")[0] == 200


def test_past_the_queue_it_is_429_at_once_for_one_text_and_many(model_path):
    current = Current(model_path, "cpu")
    go, begun, rank = threading.Event(), threading.Event(), current.generation.model.rank

    def slow(*arguments):
        begun.set()
        assert go.wait(20)
        return rank(*arguments)

    current.generation.model.rank = slow
    with serving(current, waiting_requests=2) as served:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(served.predict("kettle"))) for _ in range(3)]
        threads[0].start()
        assert begun.wait(20)
        for thread in threads[1:]:
            thread.start()
        wait_for(lambda: served.service.batcher.waiting_requests == 2)
        for texts in (["kettle"], ["kettle"] * 1000):
            status, answer, headers = served.post("/predict", texts=texts)
            assert status == 429 and "waiting" in answer["error"] and int(headers["Retry-After"]) >= 1
        assert served.ask("GET", "/health")[0] == served.ask("GET", "/ready")[0] == 200
        assert not answers
        go.set()
        for thread in threads:
            thread.join(20)
        assert len(answers) == 3 and all(len(labels[0]) == 5 for labels in answers)


def test_too_many_explanations_are_429_too(model_path):
    with serving(Current(model_path, "cpu"), aside_requests=1) as served:
        go = threading.Event()
        waiting = served.service.aside._thread.submit(go.wait, 20)
        first = threading.Thread(target=lambda: served.post("/explain", text="kettle", id=0))
        first.start()
        wait_for(lambda: served.service.aside._open == 1)
        assert served.post("/explain", text="kettle", id=0)[0] == 429
        assert served.ask("GET", "/labels")[0] == 429
        go.set()
        first.join(20)
        assert waiting.result() and served.post("/explain", text="kettle", id=0)[0] == 200


def test_explain(shop, model):
    text, label = "red kettle and a saucepan", shop.predict("red kettle and a saucepan", top=1)[0][0]
    status, why, _ = shop.post("/explain", text=text, uid=label["uid"], queries=3)
    assert status == 200 and why["label"]["label"] == label["label"] == "Home, kitchen & dining"
    assert why["score"] == pytest.approx(label["score"], abs=1e-5)
    assert [part["part"] for part in why["parts"]] == ["text", "centroid", "free vector"]
    assert why["voices"][0]["voice"] == "prototype"
    assert sum(voice["share"] for voice in why["voices"]) == pytest.approx(why["score"], abs=1e-4)
    assert sum(part["share"] for part in why["parts"]) == pytest.approx(why["voices"][0]["share"], abs=1e-4)

    words = text.split()
    assert [word["word"] for word in why["words"]] == words
    (others,) = shop.predict("red and a saucepan", top=12)
    without_kettle = next(one["score"] for one in others if one["uid"] == label["uid"])
    assert why["words"][1]["change"] == pytest.approx(label["score"] - without_kettle, abs=1e-5)
    assert max(why["words"], key=lambda word: word["change"])["word"] in {"kettle", "saucepan"}

    scores_N = model.memory.h_ND.float().numpy() @ model.encode([text])[0]
    best = np.argsort(-scores_N, kind="stable")[:3]
    assert [query["text"] for query in why["nearest"]] == [model.memory.texts[row] for row in best]
    assert [query["score"] for query in why["nearest"]] == pytest.approx(scores_N[best].tolist(), abs=1e-4)
    assert len(why["nearest_with_label"]) == 3
    for query in why["nearest"] + why["nearest_with_label"]:
        assert query["has_label"] == (label["label"] in query["labels"])
    assert all(query["has_label"] for query in why["nearest_with_label"])


def test_explanations_that_cannot_be(shop):
    assert shop.post("/explain", text="kettle", uid="unknown")[0] == 404
    assert shop.post("/explain", text="kettle", id=10_000)[0] == 404
    for bad in ({}, {"uid": "a", "id": 1}):
        status, answer, _ = shop.post("/explain", text="kettle", **bad)
        assert status == 400 and "by uid or by id" in answer["error"]


def test_labels_are_found_in_pages(shop, model):
    everything = shop.ask("GET", "/labels?limit=200")[1]
    assert everything["total"] == len(model.labels) == len(everything["labels"])
    counts = [label["train_queries"] for label in everything["labels"]]
    assert counts == sorted(model.label_counts_L.tolist(), reverse=True)
    second = shop.ask("GET", "/labels?limit=3&offset=3")[1]
    assert second["labels"] == everything["labels"][3:6] and second["total"] == 12
    found = shop.ask("GET", "/labels?q=GARDEN")[1]
    assert [label["label"] for label in found["labels"]] == ["Garden, patio"]
    tail = shop.ask("GET", "/labels?bucket=tail")[1]["labels"]
    assert tail == [label for label in everything["labels"] if label["bucket"] == "tail"]
    assert shop.ask("GET", "/labels?q=" + "%00%ff%ed%a0%80")[1]["total"] == 0
    for bad in ("limit=0", "limit=201", "offset=-1", "bucket=middle", "limit=x", "q=" + "a" * 201):
        assert shop.ask("GET", f"/labels?{bad}")[0] == 400


def test_neighbours(shop, model):
    status, answer, _ = shop.ask("GET", "/labels/3/neighbours?top=4")
    s_L = (model.prototypes_LD @ model.prototypes_LD[3]).numpy()
    best = [row for row in np.argsort(-s_L, kind="stable") if row != 3][:4]
    assert status == 200 and [label["id"] for label in answer["neighbours"]] == best
    assert answer["label"]["text"] == model.labels.texts[3]
    assert shop.ask("GET", "/labels/3")[1]["label"] == model.labels.names[3]
    for path in ("/labels/12", "/labels/12/neighbours", "/labels/99999999999", "/labels/-1", "/labels/x"):
        assert shop.ask("GET", path)[0] in {400, 404}


def test_state(shop):
    assert shop.ask("GET", "/health")[1] == shop.ask("GET", "/ready")[1] == {"status": "ok"}
    info = shop.ask("GET", "/info")[1]
    assert (info["labels"], info["model"], info["encoder"], info["facts"]["corpus"]) == (12, "shop", "static", "train")
    assert info["can"] == {"change_labels": True, "near_queries": True, "probability": True}
    rows = shop.ask("GET", "/learning")[1]["rows"]
    assert {row["phase"] for row in rows} == {"train", "validation"}
    assert 1 <= len(shop.ask("GET", "/examples")[1]["texts"]) <= 6


def test_metrics_are_prometheus(shop):
    parser = pytest.importorskip("prometheus_client.parser")
    shop.predict("kettle", "usb")
    shop.ask("GET", "/somewhere/else")
    text = shop.ask("GET", "/metrics")[1].decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    counted = {tuple(sample.labels.values()): sample.value for sample in families["primexmc_requests"].samples}
    assert counted["POST", "/predict", "200"] >= 1 and counted["GET", "(other)", "404"] >= 1
    assert {"primexmc_request_seconds", "primexmc_batch_texts", "primexmc_waiting_requests"} <= families.keys()
    assert families["primexmc_labels"].samples[0].value == 12


def test_the_page_and_its_documentation_load_nothing_from_outside(shop):
    for path in ("/", "/docs", "/page/page.css", "/page/main.js", "/page/icon.svg"):
        status, content, headers = shop.ask("GET", path)
        assert status == 200 and b"http://" not in content.replace(b"http://www.w3.org/", b"")
        assert b"https://" not in content and b"innerHTML" not in content
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert shop.ask("GET", path, headers={"If-None-Match": headers["ETag"]})[0] == 304
    assert b"<script" not in shop.ask("GET", "/")[1].replace(b'<script type="module" src="', b"")


def test_a_key_is_asked_for_everywhere_but_at_the_door(model_path):
    with serving(Current(model_path, "cpu"), Keys("a-long-key")) as served:
        for method, path in (("POST", "/predict"), ("POST", "/explain"), ("GET", "/labels"), ("GET", "/info")):
            status, answer, headers = served.ask(method, path, "{")
            assert status == 401 and "API key" in answer["error"] and headers["WWW-Authenticate"] == "Bearer"
        for path in ("/metrics", "/learning", "/examples", "/nowhere", "/labels/1"):
            assert served.ask("GET", path)[0] == 401
        for path in ("/health", "/ready", "/", "/docs", "/page/main.js", "/openapi.json"):
            assert served.ask("GET", path)[0] == 200
        with_key = {"Authorization": "Bearer a-long-key"}
        assert served.post("/predict", with_key, texts=["kettle"])[0] == 200
        assert served.ask("GET", "/info", headers=with_key)[0] == 200


def test_an_error_of_ours_is_a_500_that_repeats_nothing(model_path, capfd):
    current = Current(model_path, "cpu")
    rank = current.generation.model.rank

    def breaks(texts, top):
        if "break" in texts:
            raise RuntimeError(f"no answer to {texts}")
        return rank(texts, top)

    current.generation.model.rank = breaks
    with serving(current) as served:
        status, answer, _ = served.post("/predict", texts=["break"])
        assert (status, answer) == (500, {"error": "something went wrong in the server."})
        assert served.predict("kettle")[0]
    said = capfd.readouterr().err
    assert "RuntimeError while answering /predict" in said and "break" not in said


def test_no_text_in_the_log(model_path, capfd):
    with serving(Current(model_path, "cpu")) as served:
        served.predict("secret")
        served.post("/explain", text="secret", id=0)
        served.ask("GET", "/secret")
        served.ask("GET", "/labels?q=secret")
        served.ask("GET", "/labels/secret")
        served.ask("SECRET", "/health")
        served.ask("POST", "/predict", b'{"secret"')
        served.post("/predict", secret="secret")
        served.post("/predict", texts=[{"secret": 1}])
        metrics = served.ask("GET", "/metrics")[1].decode()
    screen = capfd.readouterr()
    log = screen.out + screen.err
    for line in ("POST /predict 200", "GET (other) 404", "GET /labels 200", "GET /labels/{id} 400", "OTHER "):
        assert line in log
    assert "secret" not in (log + metrics).lower()


def test_pipelined_and_kept_connections(shop):
    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=10)
    for _ in range(3):
        connection.request("POST", "/predict", b'{"texts": ["kettle"]}')
        response = connection.getresponse()
        assert response.status == 200 and response.read()
    connection.close()


def test_a_text_that_is_too_long_is_told_so(shop):
    status, answer, _ = shop.post("/predict", texts=["fine", "x" * 100_001])
    assert status == 400 and answer["error"] == "texts[1]: at most 100,000 characters."
