"""Milvus as an engine: embedded (Milvus Lite) in a file of the index, or a server or cluster by its address.

A password or token for a server is read from PRIMEXMC_MILVUS_TOKEN and kept nowhere.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..errors import UserError
from .engine import Floats, Keys

FILE = "milvus.db"  # a directory, in truth
TOKEN = "PRIMEXMC_MILVUS_TOKEN"
ROWS = 4096  # sent at once: 12 MB at 768 dimensions, where 64 is the most


class MilvusEngine:
    """The embedded one compares with every label and is exact; a server builds a graph (HNSW), whose effort is ef."""

    backend: ClassVar[str] = "milvus"
    most = 2**14
    surplus = 0.0
    forgets = True

    def __init__(self, uri: str, collection: str) -> None:
        self.milvus = import_milvus()
        self.uri, self.collection, self.effort = uri, collection, 100
        self.client: Any = None
        self.count, self.next_key = 0, 0

    def build(self, keys_N: Keys, z_ND: Floats, directory: Path | None) -> None:
        assert directory is not None, "Milvus needs a place for its file"
        self._connect(directory)
        self.count, self.next_key = 0, 0
        if self.client.has_collection(self.collection):
            self.client.drop_collection(self.collection)
        types = self.milvus.DataType
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", types.INT64, is_primary=True)
        schema.add_field("vector", types.FLOAT_VECTOR, dim=z_ND.shape[1])
        index = self.client.prepare_index_params()
        kind = (
            {"index_type": "HNSW", "params": {"M": 32, "efConstruction": 100}} if self.uri else {"index_type": "FLAT"}
        )
        index.add_index(field_name="vector", metric_type="IP", **kind)
        self.client.create_collection(self.collection, schema=schema, index_params=index, consistency_level="Strong")
        self.add(keys_N, z_ND)

    def efforts(self) -> list[int]:
        return [100, 150, 200, 300, 400, 600, 800, 1600] if self.uri else [100]

    def search(self, h_QD: Floats, width: int) -> Keys:
        keys_QW = np.full((len(h_QD), width), -1, dtype=np.int64)
        self._again()
        how = {"metric_type": "IP", "params": {"ef": max(self.effort, width)} if self.uri else {}}
        found = self.client.search(
            self.collection, data=list(h_QD), limit=width, search_params=how, output_fields=["id"]
        )
        for row, hits in enumerate(found):
            keys_QW[row, : len(hits)] = [hit["id"] for hit in hits]
        return keys_QW

    def add(self, keys_N: Keys, z_ND: Floats) -> None:
        self._again()
        for start in range(0, len(keys_N), ROWS):
            block = zip(keys_N[start : start + ROWS].tolist(), z_ND[start : start + ROWS], strict=True)
            self.client.insert(self.collection, [{"id": key, "vector": vector} for key, vector in block])
        self.client.flush(self.collection)
        self.count, self.next_key = self.count + len(keys_N), int(keys_N.max(initial=-1)) + 1

    def remove(self, keys_N: Keys) -> None:
        self._again()
        for start in range(0, len(keys_N), ROWS):
            self.client.delete(self.collection, ids=keys_N[start : start + ROWS].tolist())
        self.count -= len(keys_N)

    def save(self, directory: Path) -> dict[str, Any]:
        """The embedded one lets go of its file, so that the directory can be moved; it is opened again when needed."""
        self.close()
        if not self.uri and Path(self.path) != directory.absolute() / FILE:
            shutil.copytree(self.path, directory / FILE, dirs_exist_ok=True)
        facts = {"uri": self.uri, "collection": self.collection, "effort": self.effort}
        return facts | {"count": self.count, "next_key": self.next_key}

    def open(self, directory: Path, facts: dict[str, Any]) -> None:
        self.effort = int(facts["effort"])
        if not self.uri and not (directory / FILE).exists():
            raise UserError(f"{directory / FILE}: missing; `primexmc index` builds it again.")
        self._connect(directory)
        if not self.client.has_collection(self.collection):
            raise UserError(f'Milvus at {self.uri or directory / FILE} has no collection "{self.collection}".')
        self.client.load_collection(self.collection)
        self.count, self.next_key = int(facts["count"]), int(facts["next_key"])
        self._check_content(directory)

    def _check_content(self, directory: Path) -> None:
        """Labels may have been added or removed for a model that was not saved then."""
        count = self.client.query(self.collection, filter="", output_fields=["count(*)"])[0]["count(*)"]
        newer = self.client.query(self.collection, filter=f"id >= {self.next_key}", output_fields=["id"], limit=1)
        if count != self.count or newer:
            where = self.uri or directory / FILE
            raise UserError(f"{where}: holds other labels than the model; `primexmc index` builds it again.")

    def drop(self) -> None:
        """Takes the labels away from a server."""
        self._connect(Path())
        self.client.drop_collection(self.collection)
        self.close()

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None
            if not self.uri:
                from milvus_lite.server_manager import server_manager_instance

                server_manager_instance.release_server(self.path)

    def _again(self) -> None:
        if self.client is None:
            client = self._connect(Path(self.path).parent)
            client.load_collection(self.collection)

    def _connect(self, directory: Path) -> Any:
        self.path = str(directory.absolute() / FILE)
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # its errors are told below
        try:
            token = os.environ.get(TOKEN, "")
            self.client = self.milvus.MilvusClient(self.uri or self.path, token=token if self.uri else "")
            return self.client
        except self.milvus.MilvusException as error:
            if self.uri:
                raise UserError(f"{self.uri}: no Milvus answers there ({error.message}).") from None
            raise UserError(f"{self.path}: cannot be opened; another process may have it open.") from None


def import_milvus() -> Any:
    """The module, or a sentence on how to get it."""
    try:
        import pymilvus
    except ImportError:
        raise UserError('the backend milvus needs packages: pip install "primexmc[milvus]".') from None
    return pymilvus
