"""Encoders by themselves, typed anew: a block that an article leaves to its readers, and one of the least parts."""

import torch
from torch import nn

from tests.extensions.importers.library.tutorial_models import FeedForward, Projections, Table, attend


class Block(nn.Module):
    """S2: post-norm, as the article has it; a mask is given."""

    def __init__(self, width=16, hidden=24, heads=4):
        super().__init__()
        self.width, self.heads = width, heads
        self.attention = Projections(width, ("W_q", "W_k", "W_v", "W_o"), True)
        self.ffn = FeedForward(width, hidden, ("linear1", "linear2"))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, mask=None):
        mask = torch.ones(1, 1, 1, x.size(1)) if mask is None else mask
        x = self.norm1(x + self.attention(x, x, mask, self.heads))
        return self.norm2(x + self.ffn(x))


class Blocks(nn.Module):
    """What a reader built of them."""

    def __init__(self, n=3, vocab=17, width=16, length=32):
        super().__init__()
        self.embedding, self.pos_encoding = nn.Embedding(vocab, width), Table(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(n))

    def forward(self, src, _=None, pad=0):
        x = self.embedding(src) + self.pos_encoding.pe[:, : src.size(1)]
        for block in self.blocks:
            x = block(x, (src != pad)[:, None, None])
        return x


class Least(nn.Module):
    """S3: one layer of one head, no mask, no norm, no residual connection, one linear map for a network."""

    def __init__(self, vocab=17, width=16, length=32):
        super().__init__()
        self.embedding, self.pos_encoding = nn.Embedding(vocab, width), Table(length, width)
        self.attention, self.ffn = nn.Module(), nn.Linear(width, width)
        for name in ("w_q", "w_k", "w_v"):
            setattr(self.attention, name, nn.Linear(width, width))

    def forward(self, src, _=None):
        x = self.embedding(src) + self.pos_encoding.pe[:, : src.size(1)]
        q, k, v = (getattr(self.attention, name)(x) for name in ("w_q", "w_k", "w_v"))
        return self.ffn(attend(q, k, v, torch.ones(1, 1, 1, src.size(1)), 1, -1e9))
