"""Tiny models for tests: seeded, and with no parameter at a value that would hide a mistake (0 or 1)."""

from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.parameter_layout import ready, vacant
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

ONE_STACK: dict[str, Any] = {"shared_vocab": True, "tgt_vocab_size": 17}
DECODER = {"n_encoder_layers": 0, "append_source_eos": False, **ONE_STACK}  # a decoder alone
ENCODER = {"n_decoder_layers": 0, **ONE_STACK}


def tiny_config(**changes: Any) -> ModelConfig:
    """A config whose sizes all differ, so that swapped axes show."""
    values: dict[str, Any] = {
        "n_encoder_layers": 2,
        "n_decoder_layers": 3,
        "d_model": 12,
        "n_heads": 3,
        "d_ff": 20,
        "src_vocab_size": 17,
        "tgt_vocab_size": 19,
        "max_len": 16,
        "dropout": 0.0,
    }
    return ModelConfig(**(values | changes))


def tiny_model(*, seed: int = 0, dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    """A frozen model in evaluation mode."""
    torch.manual_seed(seed)
    model = Transformer(tiny_config(**changes)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.requires_grad_(False).eval()


@torch.no_grad()
def laid_out(model: Transformer) -> Transformer:
    """A copy of a model, in 32 bits, that lies in memory as a loaded one does."""
    made, places = vacant(model.config)
    for name, parameter in model.named_parameters():
        places[name].copy_(parameter)
    return ready(made)


def joined(attention: MultiHeadAttention, kind: str = "weight") -> Tensor:
    """W_Q, W_K and W_V (or their biases) below each other, as torch's own attention has them."""
    return torch.cat([getattr(module, kind) for module in (attention.q_proj, attention.k_proj, attention.v_proj)])


def random_ids(n_rows: int, length: int, *, vocab: int = 17, seed: int = 0) -> Tensor:
    """Ids of ordinary pieces [n_rows, length]: none of the four special ones."""
    return torch.randint(4, vocab, (n_rows, length), generator=torch.Generator().manual_seed(seed))


def padded_source() -> Tensor:
    """Three sources of 6, 4 and 1 pieces [3, 6]."""
    src = random_ids(3, 6)
    src[1, 4:] = 0
    src[2, 1:] = 0
    return src


def target_ids(length: int = 5, *, seed: int = 1) -> Tensor:
    """Three targets [3, length] that begin with the start id."""
    tgt = random_ids(3, length, seed=seed)
    tgt[:, 0] = 2
    return tgt
