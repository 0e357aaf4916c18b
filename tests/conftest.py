"""Order of the suite: fast tests first, so that what is broken shows soon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [item.get_closest_marker(name) is not None for name in ("browser", "slow")])


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of a test's is kept in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIMEXMC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
