"""Who may ask, and who may change."""

from __future__ import annotations

import pytest

from primexmc.errors import UserError
from primexmc.serving.keys import Keys, read_key
from primexmc.serving.refusal import Refusal

JSON = {"content-type": "application/json"}


def status_of(check, headers):
    try:
        check(headers)
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": "Bearer right-key"}, 200),
        ({"authorization": "bearer  right-key "}, 200),
        ({"x-api-key": "right-key"}, 200),
        ({}, 401),
        ({"authorization": "right-key"}, 401),
        ({"authorization": "Bearer right-ke"}, 401),
        ({"authorization": "Bearer right-keyy"}, 401),
        ({"authorization": "Basic right-key"}, 401),
        ({"x-api-key": "clé\udc80"}, 401),
    ],
)
def test_a_key(headers, status):
    assert status_of(Keys("right-key").check, headers) == status
    assert status_of(Keys().check, headers) == 200, "nobody asks for one"
    assert status_of(Keys("right-key").check_change, headers | JSON) == status


@pytest.mark.parametrize(
    ("host", "asked_as", "status"),
    [
        ("127.0.0.1", "localhost:8000", 200),
        ("127.0.0.1", "127.0.0.1:8000", 200),
        ("::1", "[::1]:8000", 200),
        ("127.0.0.1", "evil.example:8000", 403),
        ("127.0.0.1", "", 403),
        ("0.0.0.0", "localhost:8000", 403),
        ("192.168.0.7", "192.168.0.7:8000", 403),
    ],
)
def test_without_a_key_changes_come_from_this_machine_alone(host, asked_as, status):
    assert status_of(Keys(None, host).check_change, JSON | {"host": asked_as}) == status
    assert status_of(Keys("right-key", host).check_change, JSON | {"x-api-key": "right-key"}) == 200


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_changes_are_json_which_a_foreign_page_cannot_send(content_type):
    headers = {"host": "localhost", "content-type": content_type}
    assert status_of(Keys().check_change, headers) == 415


def test_where_a_key_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("PRIMEXMC_API_KEY", raising=False)
    assert read_key(None) is None
    monkeypatch.setenv("PRIMEXMC_API_KEY", "from-the-environment")
    assert read_key(None) == "from-the-environment"
    (tmp_path / "key").write_text("from-a-file\n")
    assert read_key(tmp_path / "key") == "from-a-file"


@pytest.mark.parametrize("key", ["", "short", "with a space", "ümlautümlaut"])
def test_keys_that_are_none(key, tmp_path, monkeypatch):
    (tmp_path / "key").write_text(key)
    with pytest.raises(UserError, match="at least 8"):
        read_key(tmp_path / "key")
    monkeypatch.setenv("PRIMEXMC_API_KEY", key)
    with pytest.raises(UserError, match="PRIMEXMC_API_KEY"):
        read_key(None)
    with pytest.raises(UserError, match="cannot be read"):
        read_key(tmp_path / "nowhere")
