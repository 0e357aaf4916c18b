"""Order of the suite: fast tests first, so that what is broken shows soon."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [item.get_closest_marker(name) is not None for name in ("browser", "slow")])
