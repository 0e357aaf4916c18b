"""The labels and their vectors as a collection in Milvus: embedded in a file, or a server by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import UserError
from ..model.model import PrimeModel

COLLECTION = "labels"
ROWS_AT_ONCE = 1000
LONGEST_TEXT = 65_535  # bytes in a VARCHAR


def export_milvus(model: PrimeModel, place: str) -> str:
    """`place` is a new file (Milvus Lite), or http://HOST:PORT, with #NAME for a collection not called "labels"."""
    address, _, name = place.partition("#")
    name = name or COLLECTION
    if "://" not in address:
        Path(address).parent.mkdir(parents=True, exist_ok=True)
    client = _connected(address)
    try:
        if client.has_collection(name):
            raise UserError(
                f'{address}: it has a collection "{name}" already; drop it, or name another: "{address}#NAME".'
            )
        _fill(client, name, model)
    finally:
        client.close()
    return f'{address}: {len(model.labels):,} labels in the collection "{name}", their vectors in the field vector.'


def _connected(address: str) -> Any:
    try:
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException
    except ImportError:
        raise UserError('Milvus needs its client: pip install "primexmc[milvus]".') from None
    try:
        return MilvusClient(uri=address)
    except (MilvusException, OSError, ValueError) as error:
        raise UserError(f"{address}: Milvus cannot be opened there ({error}).") from None


def _fill(client: Any, name: str, model: PrimeModel) -> None:
    """All of it, or no collection."""
    from pymilvus import DataType

    z_LD, labels = model.prototypes_LD.float().cpu().numpy(), model.labels
    schema = client.create_schema(auto_id=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    for column in ("uid", "name"):
        schema.add_field(column, DataType.VARCHAR, max_length=LONGEST_TEXT)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=z_LD.shape[1])
    index = client.prepare_index_params()
    index.add_index("vector", index_type="AUTOINDEX", metric_type="IP")  # not the cosine: added labels are shorter
    client.create_collection(name, schema=schema, index_params=index)
    try:
        for start in range(0, len(labels), ROWS_AT_ONCE):
            rows = range(start, min(start + ROWS_AT_ONCE, len(labels)))
            client.insert(
                name,
                [
                    {"id": row, "uid": _short(labels.uids[row]), "name": _short(labels.names[row]), "vector": z_LD[row]}
                    for row in rows
                ],
            )
        client.flush(name)
        client.load_collection(name)
    except BaseException:
        client.drop_collection(name)
        raise


def _short(text: str) -> str:
    return text.encode()[:LONGEST_TEXT].decode(errors="ignore")
