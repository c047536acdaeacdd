"""Transformers as people write them, each with the weights that its own code computes, kept for comparison."""

import math

import torch
from torch import nn
from torch.nn import functional as F

D, H, V = 16, 4, 23


class Kept(nn.Module):
    """A module that keeps the weights that its code computes, before dropout."""

    kept = None


class Projected(Kept):
    """Three projections, of a width that all heads share."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def in_heads(self, query, key):
        """Queries, keys and values, [text, head, place, width]."""
        return (
            lin(x).view(len(x), -1, H, D // H).transpose(1, 2)
            for lin, x in zip((self.q, self.k, self.v), (query, key, key), strict=True)
        )


def scores_of(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


class Annotated(Kept):
    """Four projections, a mask of 0 where closed, filled with -1e9; the code of many tutorials."""

    def __init__(self):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(D, D) for _ in range(4))
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key, mask=None):
        n = query.size(0)
        q, k, v = (
            lin(x).view(n, -1, H, D // H).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, key), strict=False)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(D // H)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        self.kept = scores.softmax(dim=-1)
        x = torch.matmul(self.dropout(self.kept), v)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, D))


class FusedProjection(Kept):
    """One projection for all three, split in order, as in GPT-2; a mask of -inf."""

    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, query, key, mask=None):
        n, t, _ = query.shape
        q, k, v = self.c_attn(query).split(D, dim=2)
        q, k, v = (x.view(n, t, H, D // H).transpose(1, 2) for x in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(D // H))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        self.kept = F.softmax(scores, dim=-1)
        return self.c_proj((self.kept @ v).transpose(1, 2).contiguous().view(n, t, D))


class Interleaved(Kept):
    """One projection whose rows are query, key and value of each head in turn."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, query, key, mask=None):
        n, t, _ = query.shape
        q, k, v = self.qkv(query).view(n, t, H, 3, D // H).permute(3, 0, 2, 1, 4)
        scores = scores_of(q, k)
        if mask is not None:
            scores = scores + (1.0 - mask.float()) * -10000.0
        self.kept = scores.softmax(-1)
        return (self.kept @ v).transpose(1, 2).reshape(n, t, D)


class OneHead(Kept):
    """One head of its own three projections."""

    def __init__(self):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(D, D // H, bias=False) for _ in range(3))

    def forward(self, query, key, mask=None):
        scores = self.query(query) @ self.key(key).transpose(-2, -1) * (D // H) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(mask.squeeze(1) == 0, float("-inf"))
        self.kept = F.softmax(scores, dim=-1)
        return self.kept @ self.value(key)


class HeadsInAList(Kept):
    """A list of heads, each a module."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(OneHead() for _ in range(H))

    def forward(self, query, key, mask=None):
        made = torch.cat([head(query, key, mask) for head in self.heads], dim=-1)
        self.kept = torch.stack([head.kept for head in self.heads], 1)
        return made


class LoopOverHeads(Projected):
    """A loop over slices of one projection."""

    def forward(self, query, key, mask=None):
        q, k, v = self.q(query), self.k(key), self.v(key)
        made, kept = [], []
        for h in range(H):
            part = slice(h * D // H, (h + 1) * D // H)
            scores = torch.bmm(q[..., part], k[..., part].transpose(1, 2)) / math.sqrt(D // H)
            if mask is not None:
                scores = scores.masked_fill(~mask[:, 0].bool(), -torch.inf)
            kept.append(torch.softmax(scores, -1))
            made.append(torch.bmm(kept[-1], v[..., part]))
        self.kept = torch.stack(kept, 1)
        return torch.cat(made, -1)


class Einsum(Projected):
    """Products as sums over letters, with heads between places and widths."""

    def forward(self, query, key, mask=None):
        q, k, v = (
            lin(x).reshape(len(x), -1, H, D // H)
            for lin, x in zip((self.q, self.k, self.v), (query, key, key), strict=True)
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        self.kept = torch.softmax(energy / D**0.5, dim=3)
        return torch.einsum("nhql,nlhd->nqhd", [self.kept, v]).reshape(len(query), -1, D)


class BatchOfHeads(Projected):
    """Heads folded into the batch, as in fairseq; the mask is added."""

    def forward(self, query, key, mask=None):
        n, t, s = len(query), query.shape[1], key.shape[1]
        q, k, v = (
            lin(x).view(n, -1, H, D // H).transpose(1, 2).reshape(n * H, -1, D // H)
            for lin, x in zip((self.q, self.k, self.v), (query, key, key), strict=True)
        )
        scores = torch.bmm(q * (D // H) ** -0.5, k.transpose(1, 2))
        if mask is not None:
            added = torch.zeros(n, 1, t, s).masked_fill(mask.expand(n, 1, t, s) == 0, -torch.inf)
            scores = (scores.view(n, H, t, s) + added).view(n * H, t, s)
        weights = F.softmax(scores, dim=-1)
        self.kept = weights.view(n, H, t, s)
        return torch.bmm(weights, v).view(n, H, t, D // H).transpose(1, 2).reshape(n, t, D)


class OwnSoftmax(Projected):
    """Exponentials divided by their sum."""

    def forward(self, query, key, mask=None):
        q, k, v = self.in_heads(query, key)
        scores = scores_of(q, k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        self.kept = powers / powers.sum(dim=-1, keepdim=True)
        return (self.kept @ v).transpose(1, 2).reshape(len(query), -1, D)


class KeysFirst(Projected):
    """Scores with the keys before the queries."""

    def forward(self, query, key, mask=None):
        q, k, v = (
            lin(x).view(len(x), -1, H, D // H).permute(0, 2, 3, 1)
            for lin, x in zip((self.q, self.k, self.v), (query, key, key), strict=True)
        )
        scores = k.transpose(-2, -1) @ q / math.sqrt(D // H)
        if mask is not None:
            scores = scores.masked_fill(mask.transpose(-2, -1) == 0, -1e9)
        weights = scores.softmax(dim=-2)
        self.kept = weights.transpose(-2, -1)
        return (v @ weights).permute(0, 3, 1, 2).reshape(len(query), -1, D)


class ProductsOneByOne(Projected):
    """Weights times values, summed, and a softmax by its logarithm."""

    def forward(self, query, key, mask=None):
        q, k, v = self.in_heads(query, key)
        scores = scores_of(q, k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        self.kept = F.log_softmax(scores, dim=-1).exp()
        return (self.kept.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3).transpose(1, 2).reshape(len(query), -1, D)


class TalkingHeads(Projected):
    """Weights of the heads are mixed before they are multiplied with values."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(H, H, bias=False)

    def forward(self, query, key, mask=None):
        q, k, v = self.in_heads(query, key)
        scores = scores_of(q, k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        self.kept = scores.softmax(-1)
        mixed = self.mix(self.kept.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return (mixed @ v).transpose(1, 2).reshape(len(query), -1, D)


class Fused(Projected):
    """Torch's scaled dot product, which makes no weights."""

    def forward(self, query, key, mask=None):
        q, k, v = self.in_heads(query, key)
        with torch.no_grad():
            scores = scores_of(q, k)
            scores = scores if mask is None else scores.masked_fill(mask == 0, -torch.inf)
            self.kept = scores.softmax(-1)
        opened = None if mask is None else mask.bool()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=opened).transpose(1, 2).reshape(len(query), -1, D)


class Torch(Kept):
    """Torch's own module, which gives no weights, or their mean."""

    def __init__(self, need_weights=False):
        super().__init__()
        self.attn, self.need_weights = nn.MultiheadAttention(D, H, batch_first=True), need_weights

    def forward(self, query, key, mask=None):
        closed = None
        if mask is not None:
            closed = (mask == 0).expand(len(query), H, query.shape[1], key.shape[1]).reshape(-1, *mask.shape[-2:])
            closed = closed.expand(-1, query.shape[1], key.shape[1]) if closed.shape[1] == 1 else closed
        with torch.no_grad():
            weight, bias = self.attn.in_proj_weight, self.attn.in_proj_bias
            q = F.linear(query, weight[:D], bias[:D]).view(len(query), -1, H, D // H).transpose(1, 2)
            k = F.linear(key, weight[D : 2 * D], bias[D : 2 * D]).view(len(key), -1, H, D // H).transpose(1, 2)
            scores = scores_of(q, k)
            scores = scores if mask is None else scores.masked_fill(mask == 0, -torch.inf)
            self.kept = scores.softmax(-1)
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

    def forward(self, x, memory, own, others):
        x = self.norms[0](x + self.self_attention(x, x, own))
        if self.other is not None:
            x = self.norms[1](x + self.other(x, memory, others))
        return self.norms[2](x + self.ff(x))


class Translator(nn.Module):
    """Two encoder and two decoder layers of one attention; padding is 0."""

    def __init__(self, attention, layers=2, crosses=True):
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.a = nn.ModuleList(Layer(attention, False) for _ in range(layers))
        self.b = nn.ModuleList(Layer(attention, crosses) for _ in range(layers if crosses else 0))
        self.out = nn.Linear(D, V)

    def forward(self, src, tgt):
        own = (src != 0)[:, None, None, :]
        later = torch.ones(tgt.shape[1], tgt.shape[1]).tril().bool()[None, None] & (tgt != 0)[:, None, None, :]
        x, y = self.embed(src), self.embed(tgt)
        for layer in self.a:
            x = layer(x, None, own.expand(-1, 1, src.shape[1], -1), None)
        for layer in self.b:
            y = layer(y, x, later, own.expand(-1, 1, tgt.shape[1], -1))
        return self.out(y)


ATTENTIONS = (
    Annotated, HeadsInAList, LoopOverHeads, Einsum, BatchOfHeads, OwnSoftmax, KeysFirst, ProductsOneByOne, TalkingHeads,
    Fused, Torch, AveragedByTorch,
)  # fmt: skip
OF_ONE_TEXT = (FusedProjection, Interleaved)  # which have no keys of another text
