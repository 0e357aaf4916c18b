"""`primexmc export`: a model in another program's form."""

from __future__ import annotations

import argparse
from pathlib import Path

SENTENCE = "give a model to other programs: sentence-transformers, ONNX, Milvus, Parquet, the Hugging Face hub"
FORMS = ("sentence-transformers", "onnx", "milvus", "parquet", "hub")
EPILOG = """Forms:
  sentence-transformers  a directory; SentenceTransformer(PLACE).encode gives what the model's encode gives
  onnx                   a directory: encoder with pooling and normalisation, and its tokenizer; checked against torch
  parquet                a file: id, uid, name, text, train_queries and vector of each label
  milvus                 a collection "labels" in a file (Milvus Lite) or on a server; PLACE#NAME names it otherwise
  hub                    the whole model to owner/name on the Hugging Face hub, private where it is new

Queries are encoded by one of the first two, or by PrimeModel.encode; docs/export.md has recipes for databases.

examples:
  primexmc export my-model --to parquet --out labels.parquet
  primexmc export my-model --to milvus --out labels.db
  primexmc export my-model --to milvus --out http://localhost:19530#products
  primexmc export my-model --to hub --out my-name/my-model        and then: primexmc predict hf://my-name/my-model"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a directory written by `primexmc train`")
    parser.add_argument("--to", choices=FORMS, required=True, help="the form")
    parser.add_argument("--out", metavar="PLACE", required=True, help="a file, a directory, an address or a name")


def run(arguments: argparse.Namespace) -> int:
    from ..export.export import export
    from ..model.model import PrimeModel

    print(export(PrimeModel.load(arguments.model, "cpu"), arguments.to, arguments.out))
    return 0
