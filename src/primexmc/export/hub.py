"""Upload to the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..errors import UserError
from ..model.model import PrimeModel


def upload(model: PrimeModel, place: str) -> str:
    """To `owner/name`, private where it is new. The login is huggingface_hub's own (`hf auth login`)."""
    name = place.removeprefix("hf://")
    if name.count("/") != 1 or not all(name.split("/")):
        raise UserError(f'"{place}": expected the name of a place on the hub, owner/name.')
    try:
        from huggingface_hub import HfApi

        with tempfile.TemporaryDirectory() as scratch:
            model.save(Path(scratch) / "model")
            api = HfApi()
            api.create_repo(name, private=True, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=Path(scratch) / "model", commit_message="primexmc model")
    except UserError:
        raise
    except Exception as error:  # no connection, no login, no right to it: each has its own class
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(f"hf://{name}: cannot be uploaded to the Hugging Face hub ({reason}).") from None
    told = " With the texts of its training queries (memory.safetensors)." if model.memory is not None else ""
    return f"hf://{name}: the whole model, private unless it was public before.{told}"
