"""Builds the embedded example from a directory in the LF layout: the same lines, packed small, always the same bytes.

    python tools/make_example.py DIRECTORY [OUT]

OUT defaults to src/primexmc/data/example, whose NOTICE says where the data comes from.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from primexmc.data.corpus import Corpus
from primexmc.data.lines import found, read_objects

FIELDS = ("uid", "title", "content", "target_ind", "target_rel")
DEFAULT_OUT = Path(__file__).parents[1] / "src" / "primexmc" / "data" / "example"


def pack(source: Path, target: Path) -> int:
    """Writes one part; relevance values go where all are 1. Returns the bytes written."""
    lines = []
    for _, row in read_objects(source):
        kept = {field: row[field] for field in FIELDS if row.get(field) not in (None, "")}
        if set(kept.get("target_rel", ())) <= {1.0}:
            kept.pop("target_rel", None)
        lines.append(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
    target.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), compresslevel=9, mtime=0))
    return target.stat().st_size


def main(arguments: list[str]) -> None:
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    directory, out = Path(arguments[0]), Path(arguments[1]) if len(arguments) == 2 else DEFAULT_OUT
    for part in ("trn", "tst", "lbl"):
        source = found(directory, f"{part}.json", f"{part}.jsonl")
        if source is None:
            sys.exit(f"{directory}: no {part}.json")
        print(f"{part}.json.gz: {pack(source, out / f'{part}.json.gz'):,} bytes")
    corpus = Corpus.load(out)
    train, test = corpus.split("train"), corpus.split("test")
    print(f"{len(train):,} train queries, {len(test):,} test queries, {len(corpus.labels):,} labels")


if __name__ == "__main__":
    main(sys.argv[1:])
