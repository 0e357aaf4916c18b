"""The labels and their vectors as one Parquet file, for any vector database."""

from __future__ import annotations

from pathlib import Path

from ..atomic import replace_file
from ..errors import UserError
from ..model.model import PrimeModel

ROWS_PER_GROUP = 16_384


def export_parquet(model: PrimeModel, place: str) -> str:
    """The columns id, uid, name, text, train_queries and vector: the prototype, to be searched by inner product."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError('Parquet needs pyarrow: pip install "primexmc[data]".') from None
    z_LD, labels = model.prototypes_LD.float().cpu().numpy(), model.labels
    L, D = z_LD.shape
    schema = pyarrow.schema(
        {name: pyarrow.string() for name in ("uid", "name", "text")}
        | {"id": pyarrow.int64(), "train_queries": pyarrow.int64(), "vector": pyarrow.list_(pyarrow.float32(), D)}
    )
    path = Path(place)
    with replace_file(path) as new, parquet.ParquetWriter(new, schema) as file:
        for start in range(0, L, ROWS_PER_GROUP):
            rows = slice(start, min(start + ROWS_PER_GROUP, L))
            columns = {
                "uid": list(labels.uids[rows]),
                "name": list(labels.names[rows]),
                "text": list(labels.texts[rows]),
                "id": range(rows.start, rows.stop),
                "train_queries": model.label_counts_L[rows],
                "vector": pyarrow.FixedSizeListArray.from_arrays(z_LD[rows].ravel(), D),
            }
            file.write_table(pyarrow.table(columns, schema=schema))
    return f"{path}: {L:,} labels, their vectors ({D} dimensions) in the column vector."
