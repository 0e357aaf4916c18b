from __future__ import annotations

import pytest
from retrieval.contract.backends import Maker


@pytest.fixture(scope="session")
def milvus_server(tmp_path_factory):
    """A Milvus that is only reached by its address."""
    started = []

    def uri():
        from milvus_lite.server_manager import server_manager_instance

        path = str(started[0] if started else tmp_path_factory.mktemp("server") / "db")
        started[:] = [path]
        return server_manager_instance.start_and_get_uri(path)

    yield uri
    for path in started:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(path)


@pytest.fixture
def make(tmp_path, milvus_server):
    maker = Maker(tmp_path, milvus_server)
    yield maker
    maker.close()
