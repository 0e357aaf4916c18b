"""The gate before an application that does what a test wants: sizes, times, errors, clients that go away."""

from __future__ import annotations

import asyncio
import json

import pytest

from primexmc.serving.gate import Gate
from primexmc.serving.limits import Limits
from primexmc.serving.refusal import Refusal

LIMITS = Limits(body_bytes=10, body_s=0.1, answer_s=0.2)


async def echo(scope, receive, send):
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-method", scope["method"].encode())]})
    await send({"type": "http.response.body", "body": message["body"]})


def through(app, chunks=(b"",), headers=(), method="POST", path="/x", goes_away=False, stalls=False, early=None):
    """(status, body, headers, what the log was told) of a request whose body comes in these chunks."""
    sent, told = [], []

    async def main():
        left = list(chunks)

        async def receive():
            if left:
                return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or stalls}
            if goes_away:
                return {"type": "http.disconnect"}
            await asyncio.sleep(30)

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
        gate = Gate(app, LIMITS, early or (lambda scope: None), lambda *line: told.append(line[:3]))
        await asyncio.wait_for(gate(scope, receive, send), 10)

    asyncio.run(main())
    if not sent:
        return None, None, None, told
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], body, dict(sent[0]["headers"]), told


def test_a_body_goes_through_whole():
    status, body, headers, _ = through(echo, [b"12", b"", b"345"])
    assert (status, body) == (200, b"12345")
    assert (
        headers[b"x-content-type-options"] == b"nosniff"
        and b"default-src 'none'" in headers[b"content-security-policy"]
    )
    assert through(echo, [b"1234567890"])[0] == 200


@pytest.mark.parametrize("length", [b"11", b"9" * 5000])
def test_a_length_that_is_too_large_is_refused_before_the_body(length):
    status, body, _, told = through(echo, [], [(b"content-length", length)])
    assert status == 413 and json.loads(body) == {"error": "a body has at most 10 bytes."}
    assert told == [("POST", "(other)", 413)]


def test_a_body_without_a_length_is_counted_as_it_comes():
    assert through(echo, [b"123456", b"78901", b"never read"])[0] == 413
    assert through(echo, [b"123456", b"78901"], [(b"content-length", b"3")])[0] == 413, "whatever its header says"


def test_a_body_that_does_not_come():
    status, body, _, _ = through(echo, [b"12"], stalls=True)
    assert status == 408 and b"in time" in body


def test_an_answer_that_does_not_come():
    cancelled = []

    async def slow(scope, receive, send):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    status, body, headers, _ = through(slow)
    assert (
        (status, cancelled) == (503, [True]) and b"no answer within 0.2 s" in body and headers[b"retry-after"] == b"5"
    )


def test_nobody_works_for_who_has_gone_away():
    cancelled = []

    async def slow(scope, receive, send):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    status, _, _, told = through(slow, goes_away=True)
    assert (status, cancelled, told) == (None, [True], [("POST", "(other)", 499)])


def test_an_error_of_ours_repeats_nothing(capsys):
    async def broken(scope, receive, send):
        raise RuntimeError("secret")

    status, body, _, _ = through(broken, path="/secret")
    assert status == 500 and b"something went wrong" in body and b"secret" not in body
    said = capsys.readouterr().err
    assert "RuntimeError while answering (other)" in said and "secret" not in said


def test_a_refusal_can_come_before_the_body_is_read():
    def refuse(scope):
        raise Refusal(429, "later.", {"Retry-After": "3"})

    status, body, headers, _ = through(echo, [b"never read"] * 9, early=refuse)
    assert (status, json.loads(body), headers[b"retry-after"]) == (429, {"error": "later."}, b"3")


def test_head_is_get_and_strange_methods_are_not_repeated():
    assert through(echo, method="HEAD")[2][b"x-method"] == b"GET"
    _, _, _, told = through(echo, method="SECRET")
    assert told == [("OTHER", "(other)", 200)]


def test_what_curl_sends_is_read_as_json():
    async def content_type(scope, receive, send):
        assert dict(scope["headers"])[b"content-type"] == b"application/json"
        await echo(scope, receive, send)

    form = [(b"content-type", b"application/x-www-form-urlencoded")]
    assert through(content_type, headers=form, path="/predict")[0] == 200
    assert through(content_type, headers=form, path="/labels")[0] == 500, "changes are not: browsers send forms"
