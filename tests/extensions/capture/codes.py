"""Transformers as people write them, each with the weights that its own code computes, kept for comparison."""

import math

import torch
from torch import nn
from torch.nn import functional as F

D, H, V = 16, 4, 23
WIDTH = D // H


def split(x):
    """[text, head, place, width]"""
    return x.view(len(x), -1, H, WIDTH).transpose(1, 2)


def scores_of(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def filled(scores, mask, value=-1e9):
    """The code of many tutorials: a mask is 0 where closed."""
    return scores.masked_fill(mask == 0, value)


class Kept(nn.Module):
    """A module that keeps the weights that its code computes, before dropout."""

    kept = None


class Projected(Kept):
    """Three projections of a width that all heads share, and what `attend` makes of them."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def in_heads(self, query, key):
        return split(self.q(query)), split(self.k(key)), split(self.v(key))

    def forward(self, query, key, mask):
        made = self.attend(*self.in_heads(query, key), mask)
        return made.transpose(1, 2).reshape(len(query), -1, D)


class Annotated(Projected):
    """Weights in dropout, and a projection behind."""

    def __init__(self):
        super().__init__()
        self.out, self.dropout = nn.Linear(D, D), nn.Dropout(0.1)

    def forward(self, query, key, mask):
        return self.out(super().forward(query, key, mask))

    def attend(self, q, k, v, mask):
        self.kept = filled(scores_of(q, k), mask).softmax(dim=-1)
        return torch.matmul(self.dropout(self.kept), v)


class FusedProjection(Kept):
    """One projection for all three, split in order, as in GPT-2; a mask of -inf."""

    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, query, key, mask):
        q, k, v = map(split, self.c_attn(query).split(D, dim=2))
        self.kept = F.softmax(filled((q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(WIDTH)), mask, -torch.inf), dim=-1)
        return self.c_proj((self.kept @ v).transpose(1, 2).contiguous().view(query.shape))


class Interleaved(Kept):
    """One projection whose rows are query, key and value of each head in turn; the mask is added."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, query, key, mask):
        q, k, v = self.qkv(query).view(*query.shape[:2], H, 3, WIDTH).permute(3, 0, 2, 1, 4)
        self.kept = (scores_of(q, k) + (1.0 - mask.float()) * -10000.0).softmax(-1)
        return (self.kept @ v).transpose(1, 2).reshape(query.shape)


class OneHead(Kept):
    """One head of its own three projections."""

    def __init__(self):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(D, WIDTH, bias=False) for _ in range(3))

    def forward(self, query, key, mask):
        scores = self.query(query) @ self.key(key).transpose(-2, -1) * WIDTH**-0.5
        self.kept = F.softmax(filled(scores, mask.squeeze(1), -torch.inf), dim=-1)
        return self.kept @ self.value(key)


class HeadsInAList(Kept):
    """A list of heads, each a module."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(OneHead() for _ in range(H))

    def forward(self, query, key, mask):
        made = torch.cat([head(query, key, mask) for head in self.heads], dim=-1)
        self.kept = torch.stack([head.kept for head in self.heads], 1)
        return made


class LoopOverHeads(Projected):
    """A loop over slices of one projection."""

    def forward(self, query, key, mask):
        made, kept = [], []
        parts = (projection.split(WIDTH, dim=-1) for projection in (self.q(query), self.k(key), self.v(key)))
        for q, k, v in zip(*parts, strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(WIDTH)
            kept.append(torch.softmax(scores.masked_fill(~mask[:, 0].bool(), -torch.inf), -1))
            made.append(torch.bmm(kept[-1], v))
        self.kept = torch.stack(kept, 1)
        return torch.cat(made, -1)


class Einsum(Projected):
    """Products as sums over letters, with heads between places and widths."""

    def forward(self, query, key, mask):
        q, k, v = (x.reshape(len(x), -1, H, WIDTH) for x in (self.q(query), self.k(key), self.v(key)))
        energy = filled(torch.einsum("nqhd,nkhd->nhqk", [q, k]), mask, float("-1e20"))
        self.kept = torch.softmax(energy / D**0.5, dim=3)
        return torch.einsum("nhql,nlhd->nqhd", [self.kept, v]).reshape(len(query), -1, D)


class HeadsBetween(Projected):
    """The same with heads between queries and keys."""

    def forward(self, query, key, mask):
        q, k, v = (x.reshape(len(x), -1, H, WIDTH) for x in (self.q(query), self.k(key), self.v(key)))
        energy = filled(torch.einsum("nqhd,nkhd->nqhk", [q, k]), mask.transpose(1, 2))
        weights = torch.softmax(energy / D**0.5, dim=3)
        self.kept = weights.transpose(1, 2)
        return torch.einsum("nqhl,nlhd->nqhd", [weights, v]).reshape(len(query), -1, D)


class BatchOfHeads(Projected):
    """Heads folded into the batch, as in fairseq; the mask is added."""

    def attend(self, q, k, v, mask):
        n, t, s = len(q), q.shape[2], k.shape[2]
        q, k, v = (x.reshape(n * H, -1, WIDTH) for x in (q, k, v))
        scores = torch.bmm(q * WIDTH**-0.5, k.transpose(1, 2))
        added = filled(torch.zeros(n, 1, t, s), mask.expand(n, 1, t, s), -torch.inf)
        weights = F.softmax((scores.view(n, H, t, s) + added).view(n * H, t, s), dim=-1)
        self.kept = weights.view(n, H, t, s)
        return torch.bmm(weights, v).view(n, H, t, WIDTH)


class OwnSoftmax(Projected):
    """Exponentials divided by their sum."""

    def attend(self, q, k, v, mask):
        scores = filled(scores_of(q, k), mask)
        powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        self.kept = powers / powers.sum(dim=-1, keepdim=True)
        return self.kept @ v


class KeysFirst(Projected):
    """Scores with the keys before the queries."""

    def attend(self, q, k, v, mask):
        weights = filled(k @ q.mT / math.sqrt(WIDTH), mask.mT).softmax(dim=-2)
        self.kept = weights.mT
        return (v.mT @ weights).mT


class ProductsOneByOne(Projected):
    """Weights times values, summed, and a softmax by its logarithm."""

    def attend(self, q, k, v, mask):
        self.kept = F.log_softmax(filled(scores_of(q, k), mask), dim=-1).exp()
        return (self.kept.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)


class TalkingHeads(Projected):
    """Weights of the heads are mixed before they are multiplied with values."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(H, H, bias=False)

    def attend(self, q, k, v, mask):
        self.kept = filled(scores_of(q, k), mask).softmax(-1)
        return self.mix(self.kept.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v


class Fused(Projected):
    """Torch's scaled dot product, which makes no weights."""

    def attend(self, q, k, v, mask):
        with torch.no_grad():
            self.kept = filled(scores_of(q, k), mask, -torch.inf).softmax(-1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.bool())


class Torch(Kept):
    """Torch's own module, which gives no weights, or their mean."""

    def __init__(self, need_weights=False):
        super().__init__()
        self.attn, self.need_weights = nn.MultiheadAttention(D, H, batch_first=True), need_weights

    def forward(self, query, key, mask):
        closed = (mask == 0).expand(len(query), H, -1, -1).flatten(0, 1)
        with torch.no_grad():
            maps = zip((query, key), self.attn.in_proj_weight.split(D), self.attn.in_proj_bias.split(D), strict=False)
            q, k = (split(F.linear(*one)) for one in maps)
            self.kept = filled(scores_of(q, k), mask, -torch.inf).softmax(-1)
        return self.attn(query, key, key, attn_mask=closed, need_weights=self.need_weights)[0]


class AveragedByTorch(Torch):
    """The mean over heads is given."""

    def __init__(self):
        super().__init__(need_weights=True)


class Layer(nn.Module):
    """A layer of a stack: self-attention, attention to the other stack if there is one, feed-forward."""

    def __init__(self, attention, crosses):
        super().__init__()
        self.self_attention, self.norms = attention(), nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.other = attention() if crosses else None
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))

    def forward(self, x, own, memory=None, others=None):
        x = self.norms[0](x + self.self_attention(x, x, own))
        if self.other is not None:
            x = self.norms[1](x + self.other(x, memory, others))
        return self.norms[2](x + self.ff(x))


class Translator(nn.Module):
    """Two encoder and two decoder layers of one attention; padding is 0."""

    def __init__(self, attention):
        super().__init__()
        self.embed, self.out = nn.Embedding(V, D), nn.Linear(D, V)
        self.a, self.b = (nn.ModuleList(Layer(attention, crosses) for _ in range(2)) for crosses in (False, True))

    def forward(self, src, tgt):
        own = (src != 0)[:, None, None, :]
        later = torch.ones(tgt.shape[1], tgt.shape[1]).tril().bool()[None, None] & (tgt != 0)[:, None, None, :]
        x, y = self.embed(src), self.embed(tgt)
        for layer in self.a:
            x = layer(x, own.expand(-1, 1, src.shape[1], -1))
        for layer in self.b:
            y = layer(y, later, x, own.expand(-1, 1, tgt.shape[1], -1))
        return self.out(y)


class OneStack(nn.Module):
    """Layers of self-attention under a causal mask."""

    def __init__(self, attention):
        super().__init__()
        self.embed, self.layers = nn.Embedding(V, D), nn.ModuleList(Layer(attention, False) for _ in range(2))

    def forward(self, ids):
        x, mask = self.embed(ids), torch.ones(ids.shape[1], ids.shape[1]).tril()[None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return x


ATTENTIONS = (
    Annotated, HeadsInAList, LoopOverHeads, Einsum, BatchOfHeads, OwnSoftmax, KeysFirst, ProductsOneByOne, TalkingHeads,
    Fused, Torch, AveragedByTorch,
)  # fmt: skip
OF_ONE_TEXT = (FusedProjection, Interleaved, HeadsBetween)
"""Those that have no keys of another text, or are tried alone."""
