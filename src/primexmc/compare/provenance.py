"""Which code, which data and which command a row comes from."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..config import flatten
from ..data.corpus import Corpus, Split
from ..data.texts import Texts
from .task import NO_MODE

PACKAGE = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The git commit of the checkout that runs, with "+" where its source has changed since; else the version.

    `PRIMEXMC_COMMIT` names it for a copy without its history, or with an older one.
    """
    root, named = PACKAGE.parents[1], os.environ.get("PRIMEXMC_COMMIT")
    if named or root / "src" / "primexmc" != PACKAGE or not (root / ".git").exists():
        return named or __version__
    revision = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src")
    return __version__ if not revision else revision + ("+" if changed else "")


def retold(
    data: str, recipe: str | None, preset: str | None, config: str | Path | None, settings: Mapping[str, Any]
) -> list[str]:
    """The command line of a comparison without its methods and seeds."""
    words = ["primexmc", "compare", data]
    words += ["--recipe", recipe] if recipe else []
    words += ["--preset", preset] if preset else []
    words += ["--config", str(config)] if config else []
    for key, value in flatten(settings):
        if key != "training.seed":
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def row_command(words: Sequence[str], method: str, mode: str, seed: int) -> str:
    """What makes one row alone."""
    words = [*words, "--methods", method]
    words += ["--modes", mode] if mode not in (NO_MODE, "theta") else []
    return shlex.join(words + (["--set", f"training.seed={seed}"] if seed else []))


def row_key(data_key: str, method: str, mode: str, seed: int, settings: Mapping[str, Any]) -> str:
    """The same for the same plan on the same data."""
    content = json.dumps([data_key, method, mode, seed, dict(settings)], sort_keys=True, default=str)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def corpus_key(corpus: Corpus) -> str:
    """The same for the same labels, texts, pairs and filters."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(Texts.of(corpus.labels.texts).blob.tobytes())
    for name in ("train", "val", "test"):
        split: Split | None = getattr(corpus, name)
        digest.update(name.encode())
        if split is not None:
            digest.update(Texts.of(split.texts).blob.tobytes())
            for matrix in (split.positives, split.filtered):
                if matrix is not None:
                    digest.update(np.ascontiguousarray(matrix.indptr, dtype=np.int64).tobytes())
                    digest.update(np.ascontiguousarray(matrix.indices, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
