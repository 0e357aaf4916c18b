"""The static encoder: a learned vector and a learned weight for each token, averaged. Made for CPUs.

The table inside the package was made from MiniLM by tools/make_static.py; nothing is downloaded.
Shapes: V tokens in the vocabulary, B texts, T tokens in all, D dimensions.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from ..config import Settings
from ..errors import UserError
from .encoder import TextEncoder
from .tensor_file import write_tensors
from .token_batch import TokenBatch


class StaticEncoder(TextEncoder):
    """h = mean over the text's tokens of weight_t * vector_t."""

    add_special_tokens = False

    def __init__(self, vectors_VD: Tensor, weight_V: Tensor, tokenizer: Tokenizer, dropout: float = -1.0) -> None:
        super().__init__()
        self.dim = vectors_VD.shape[1]
        self.tokenizer = tokenizer
        self.vectors_VD = nn.Parameter(vectors_VD.float())
        self.weight_V = nn.Parameter(weight_V.float())
        self.token_dropout = max(dropout, 0.0)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Dropout leaves whole tokens out: that costs a mask of T numbers in place of B x D."""
        # not weight_V[ids]: CPU threads would add up its gradient in an order of their own
        weight_T = self.weight_V.index_select(0, batch.ids_T)
        if self.training and self.token_dropout > 0:
            weight_T = functional.dropout(weight_T, self.token_dropout)
        sum_BD = functional.embedding_bag(
            batch.ids_T, self.vectors_VD, batch.start_B(), mode="sum", per_sample_weights=weight_T
        )
        return sum_BD / batch.length_B().clamp(min=1)[:, None]

    def save(self, directory: Path, settings: Settings) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(str(directory / "tokenizer.json"))
        tensors = {"vectors": self.vectors_VD.detach().cpu(), "weight": self.weight_V.detach().cpu()}
        write_tensors(tensors, directory / "vectors.safetensors")

    @classmethod
    def from_directory(cls, directory: Path | None, dropout: float = -1.0) -> StaticEncoder:
        """A trained one from its directory, or the table inside the package where none is given."""
        if directory is None:
            with resources.as_file(resources.files("primexmc.model") / "static_table") as embedded:
                return cls.from_directory(embedded, dropout)
        stored, tokenizer = _read(directory)
        vectors_VD = stored["vectors"].float()
        if "scale" in stored:  # the embedded table: 8-bit codes with a scale a row
            vectors_VD = vectors_VD * stored["scale"].float()[:, None]
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(vectors_VD, stored["weight"].float(), tokenizer, dropout)


def _read(directory: Path) -> tuple[dict[str, Tensor], Tokenizer]:
    """What `save` wrote; tokenizers raises nothing more special than Exception."""
    try:
        stored = load_file(directory / "vectors.safetensors")
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    except Exception as error:
        raise UserError(f"{directory}: encoder missing or damaged ({error}); train or copy the model again.") from None
    if not {"vectors", "weight"} <= stored.keys():
        raise UserError(f"{directory / 'vectors.safetensors'}: not of a static encoder; train or copy the model again.")
    return stored, tokenizer
