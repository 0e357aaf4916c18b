"""The API key, and who may change the model."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from ..errors import UserError
from .refusal import Refusal

VARIABLE = "PRIMEXMC_API_KEY"
SHORTEST = 8


@dataclass(frozen=True)
class Keys:
    """Without a key everybody may ask, and whoever sits at this machine may change labels."""

    key: str | None = None
    host: str = "127.0.0.1"  # that is listened at

    def check(self, headers: Mapping[str, str]) -> None:
        """Raises 401 unless the right key comes along, as `Authorization: Bearer KEY` or `X-API-Key: KEY`."""
        if self.key is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = headers.get("x-api-key", "")
        # Digests have one length, so that the time tells nothing of the key's.
        if not hmac.compare_digest(_digest(given.strip()), _digest(self.key)):
            sentence = "expected the API key as `Authorization: Bearer KEY`."
            raise Refusal(HTTPStatus.UNAUTHORIZED, sentence, {"WWW-Authenticate": "Bearer"})

    @property
    def may_change(self) -> bool:
        """Whether changes are possible at all."""
        return self.key is not None or is_loopback(self.host)

    def check_change(self, headers: Mapping[str, str]) -> None:
        """A foreign web page can send a browser's requests here, under a name of its own: without a key only
        requests to this machine by its own name, and as JSON, which a browser does not send for strangers."""
        self.check(headers)
        if not self.may_change:
            sentence = f"labels are changed with an API key, or at this machine; start the server with {VARIABLE}."
            raise Refusal(HTTPStatus.FORBIDDEN, sentence)
        if self.key is None and not is_loopback(_hostname(headers.get("host", ""))):
            raise Refusal(HTTPStatus.FORBIDDEN, "without an API key, labels are changed at localhost alone.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected Content-Type: application/json.")


def read_key(file: Path | None) -> str | None:
    """The key from a file, or from the environment; none where neither is given."""
    if file is not None:
        try:
            key = file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise UserError(f"{file}: the API key cannot be read ({error}).") from None
        place = str(file)
    elif VARIABLE in os.environ:
        key, place = os.environ[VARIABLE].strip(), VARIABLE
    else:
        return None
    if len(key) < SHORTEST or not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError(f"{place}: an API key has at least {SHORTEST} visible ASCII characters and no space.")
    return key


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(header: str) -> str:
    """`[::1]:8000`, `localhost:8000` or `localhost` without the port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
