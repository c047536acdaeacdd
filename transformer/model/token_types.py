"""Token types: a learned vector that says which part of a source a token belongs to, added to its embedding.

Source: Devlin et al., "BERT" (2019), section 3 and figure 2, which calls them segments.

Shapes: B batch, T tokens, D d_model.
"""

import torch
from torch import Tensor, nn

from transformer.model.config import ModelConfig


class TokenTypes(nn.Module):
    """A table with a row for each type."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.n_token_types, config.d_model))

    def forward(self, ids: Tensor, types: Tensor | None = None) -> Tensor:
        """Ids [B, T] -> their types' vectors [B, T, D]; every type is 0 unless `types` [B, T] says otherwise."""
        return self.table[torch.zeros_like(ids) if types is None else types]
