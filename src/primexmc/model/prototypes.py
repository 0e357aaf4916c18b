"""How a label's text, centroid and free vector become its prototype: the Label Prototype Network, or their sum.

Shapes: M labels, 3 tokens, D dimensions, H heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..config import PrototypeSettings
from ..errors import UserError
from ..own_code import own


def combiner(dim: int, settings: PrototypeSettings) -> nn.Module:
    """What `prototypes.combine` names. One's own is a module made from (dim, settings) and called like these."""
    if settings.combine == "network":
        return LabelPrototypeNetwork(dim, settings)
    if settings.combine == "sum":
        return SumOfTokens(settings)
    made: nn.Module = own(settings.combine, "prototypes.combine")(dim, settings)
    return made


class LabelPrototypeNetwork(nn.Module):
    """One post-norm transformer layer over a label's three tokens, without positions; the prototype is their mean."""

    def __init__(self, dim: int, settings: PrototypeSettings) -> None:
        super().__init__()
        heads = settings.heads
        if dim % heads:
            raise UserError(f"prototypes.heads ({heads}) must divide the encoder's {dim} dimensions.")
        self.heads, self.dropout, self.normalise_text = heads, settings.dropout, settings.normalise_text
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm_attention = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, settings.width)
        self.narrow = nn.Linear(settings.width, dim)
        self.norm_feed_forward = nn.LayerNorm(dim)
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, h_MD: Tensor, c_MD: Tensor, v_MD: Tensor, has_c_M: Tensor, has_v_M: Tensor) -> Tensor:
        """z_MD, un-normalised. A token that a label does not have takes no part, in attention or mean."""
        if self.normalise_text:
            h_MD = functional.normalize(h_MD, dim=1)
        x_M3D = torch.stack((h_MD, c_MD.to(h_MD.dtype), v_MD.to(h_MD.dtype)), dim=1)
        has_M3 = torch.stack((torch.ones_like(has_c_M), has_c_M, has_v_M), dim=1)
        return self.mix(x_M3D, has_M3)

    def mix(self, x_M3D: Tensor, has_M3: Tensor) -> Tensor:
        """z_MD, un-normalised, of three tokens each, of which at least one takes part."""
        x_M3D = self.norm_attention(x_M3D + self._drop(self._attend(x_M3D, has_M3)))
        wide = self._drop(functional.gelu(self.widen(x_M3D)))
        x_M3D = self.norm_feed_forward(x_M3D + self._drop(self.narrow(wide)))
        share_M3 = has_M3.to(x_M3D.dtype) / has_M3.sum(dim=1, keepdim=True)
        z_MD: Tensor = (x_M3D * share_M3[:, :, None]).sum(dim=1)
        return z_MD

    def _attend(self, x_M3D: Tensor, has_M3: Tensor) -> Tensor:
        M, tokens, D = x_M3D.shape
        qkv = self.qkv(x_M3D).view(M, tokens, 3, self.heads, D // self.heads)
        q_MH3d, k_MH3d, v_MH3d = qkv.permute(2, 0, 3, 1, 4)
        scores_MH33 = q_MH3d @ k_MH3d.transpose(-1, -2) / (D // self.heads) ** 0.5
        scores_MH33 = scores_MH33.masked_fill(~has_M3[:, None, None, :], float("-inf"))
        attention_MH33 = self._drop(scores_MH33.softmax(dim=-1))
        attended_M3D: Tensor = self.out((attention_MH33 @ v_MH3d).transpose(1, 2).reshape(M, tokens, D))
        return attended_M3D

    def _drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout, self.training) if self.dropout > 0 else x


class SumOfTokens(nn.Module):
    """The plain sum of the tokens that a label has, nothing learned in it: with text and free vector this is DEXA."""

    def __init__(self, settings: PrototypeSettings) -> None:
        super().__init__()
        self.normalise_text = settings.normalise_text

    def forward(self, h_MD: Tensor, c_MD: Tensor, v_MD: Tensor, has_c_M: Tensor, has_v_M: Tensor) -> Tensor:
        """z_MD, un-normalised."""
        if self.normalise_text:
            h_MD = functional.normalize(h_MD, dim=1)
        return h_MD + c_MD * has_c_M[:, None] + v_MD * has_v_M[:, None]
