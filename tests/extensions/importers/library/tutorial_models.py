"""Models as tutorials write them, typed anew: their names, their arithmetic, and what answers their questions."""

import math

import torch
import torch.nn.functional as F
from torch import nn

IDS = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
POST = {"n_heads": 4, "activation": "relu", "norm": "post", "scale_embedding": False, **IDS}
PRE = POST | {"norm": "pre", "scale_embedding": True}
PADDED = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, 0, 0]]), torch.tensor([[2, 5, 6, 7], [2, 8, 9, 10]])


def saved(path, content):
    path.parent.mkdir(exist_ok=True)
    torch.save(content, path)
    return path


def sinusoids(length, width):
    table = torch.zeros(length, width)
    place = torch.arange(length).float()[:, None]
    rate = torch.exp(torch.arange(0, width, 2).float() * -(math.log(10000.0) / width))
    table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
    return table[None]


class Table(nn.Module):
    """A buffer of sinusoids."""

    def __init__(self, length, width, name="pe"):
        super().__init__()
        self.register_buffer(name, sinusoids(length, width))


MAPS = []  # what `attend` computed, call by call


def attend(q, k, v, mask, heads, fill):
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(mask == 0, fill).softmax(-1)
    MAPS.append(weights)
    return (weights @ v).transpose(1, 2).flatten(2)


def masks(src, tgt, pad):
    n = tgt.size(1)
    return (src != pad)[:, None, None], (tgt != pad)[:, None, None] & torch.ones(n, n, dtype=torch.bool).tril()


def put(module, path, part):
    """Give a module a part by its dotted name; a module on the way is only a name for others."""
    folder, _, name = path.rpartition(".")
    if folder:
        inner = folder.partition(".")[0]
        if not hasattr(module, inner):
            module.add_module(inner, nn.Module())
        put(module.get_submodule(inner), path.partition(".")[2], part)
    else:
        module.add_module(name, part)


class DeviationNorm(nn.Module):
    def __init__(self, width, scale="a_2", shift="b_2", unbiased=True):
        super().__init__()
        self.names, self.unbiased = (scale, shift), unbiased
        setattr(self, scale, nn.Parameter(torch.ones(width)))
        setattr(self, shift, nn.Parameter(torch.zeros(width)))

    def forward(self, x):
        scale, shift = (getattr(self, name) for name in self.names)
        deviation = x.std(-1, keepdim=True, unbiased=self.unbiased)
        return scale * (x - x.mean(-1, keepdim=True)) / (deviation + 1e-6) + shift


class FeedForward(nn.Module):
    def __init__(self, width, hidden, names=("w_1", "w_2")):
        super().__init__()
        for name, sizes in zip(names, ((width, hidden), (hidden, width)), strict=True):
            setattr(self, name, nn.Linear(*sizes))
        self.names = names

    def forward(self, x):
        up, down = (getattr(self, name) for name in self.names)
        return down(F.relu(up(x)))


# PyTorch's own layers between a reader's embeddings and output.


class TorchModel(nn.Module):
    """As PyTorch's own tutorial of translation names it."""

    def __init__(self, norm_first=False, width=16, hidden=24, heads=4, layers=(2, 1), vocabs=(17, 19), length=32):
        super().__init__()
        self.width = width
        self.transformer = nn.Transformer(
            width, heads, *layers, hidden, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        self.generator = nn.Linear(width, vocabs[1])
        for name, vocab in zip(("src_tok_emb", "tgt_tok_emb"), vocabs, strict=True):
            put(self, f"{name}.embedding", nn.Embedding(vocab, width))
        self.positional_encoding = Table(length, width, "pos_embedding")
        self.positional_encoding.pos_embedding = self.positional_encoding.pos_embedding.transpose(0, 1)  # [L, 1, D]

    def embed(self, table, ids):
        places = self.positional_encoding.pos_embedding[: ids.size(1), 0]
        return table.embedding(ids) * math.sqrt(self.width) + places

    def forward(self, src, tgt, pad=0):
        out = self.transformer(
            self.embed(self.src_tok_emb, src),
            self.embed(self.tgt_tok_emb, tgt),
            tgt_mask=~torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).tril(),
            src_key_padding_mask=src == pad,
            memory_key_padding_mask=src == pad,
        )
        return self.generator(out)


# Articles, and the Annotated Transformer: layers written out.


class Projections(nn.Module):
    def __init__(self, width, names, bias):
        super().__init__()
        self.names = names
        for name in names:
            put(self, name, nn.Linear(width, width, bias=bias))

    def forward(self, x, y, mask, heads):
        q, k, v = (self.get_submodule(name)(z) for name, z in zip(self.names, (x, y, y), strict=False))
        return self.get_submodule(self.names[3])(attend(q, k, v, mask, heads, -1e9))


class ArticleLayer(nn.Module):
    def __init__(self, style, width, hidden, heads, cross):
        super().__init__()
        self.heads, self.style, self.norms = heads, style, style["norms"][: 2 + cross]
        self.attentions = ("self_attn", style["cross"])[: 1 + cross]
        for name in self.attentions:
            put(self, name, Projections(width, style["projections"], style["bias"]))
        put(self, style["ffn"], FeedForward(width, hidden, style["up_down"]))
        for name in self.norms:
            put(self, name, style["norm"](width))

    def around(self, place, x, compute):
        norm = self.get_submodule(self.norms[place])
        return x + compute(norm(x)) if self.style["last"] else norm(x + compute(x))

    def forward(self, x, mask, memory=None, memory_mask=None):
        own, cross = (self.get_submodule(self.attentions[i]) for i in (0, -1))
        x = self.around(0, x, lambda z: own(z, z, mask, self.heads))
        if memory is not None:
            x = self.around(1, x, lambda z: cross(z, memory, memory_mask, self.heads))
        return self.around(-1, x, self.get_submodule(self.style["ffn"]))


class Article(nn.Module):
    """An article's model, with its names for everything."""

    def __init__(self, style, width=16, hidden=24, heads=4, layers=(2, 1), vocabs=(17, 19), length=32):
        super().__init__()
        self.style, self.width = style, width
        for cross, (name, n) in enumerate(zip(style["layers"], layers, strict=True)):
            put(self, name, nn.ModuleList(ArticleLayer(style, width, hidden, heads, bool(cross)) for _ in range(n)))
        for name, vocab in zip(style["tables"], vocabs, strict=True):
            put(self, name, nn.Embedding(vocab, width))
        for name in style["positions"]:
            put(self, name, Table(length, width))
        put(self, style["output"], nn.Linear(width, vocabs[1]))
        for name in style["last"]:
            put(self, name, style["norm"](width))

    def forward(self, src, tgt, pad=0):
        src_mask, tgt_mask = masks(src, tgt, pad)
        memory = self.stack(0, src, src_mask)
        return self.get_submodule(self.style["output"])(self.stack(1, tgt, tgt_mask, memory, src_mask))

    def stack(self, i, ids, *given):
        style, scale = self.style, math.sqrt(self.width) if self.style["scaled"] else 1.0
        places = self.get_submodule(style["positions"][i % len(style["positions"])]).pe
        x = self.get_submodule(style["tables"][i])(ids) * scale + places[:, : ids.size(1)]
        for layer in self.get_submodule(style["layers"][i]):
            x = layer(x, *given)
        return self.get_submodule(style["last"][i])(x) if style["last"] else x


# Encoders by themselves: a block that an article leaves to its readers, and one of the least parts.


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
        self.attention = nn.ModuleDict({name: nn.Linear(width, width) for name in ("w_q", "w_k", "w_v")})
        self.ffn = nn.Linear(width, width)

    def forward(self, src, _=None):
        x = self.embedding(src) + self.pos_encoding.pe[:, : src.size(1)]
        q, k, v = (self.attention[name](x) for name in ("w_q", "w_k", "w_v"))
        return self.ffn(attend(q, k, v, torch.ones(1, 1, 1, src.size(1)), 1, -1e9))


def own_norm(width):
    return DeviationNorm(width, "gamma", "beta", unbiased=False)


_USUAL = {"norms": ("norm1", "norm2", "norm3"), "cross": "cross_attn", "last": ()}
STYLES = {
    "S0": _USUAL | {
        "layers": ("encoder_layers", "decoder_layers"), "tables": ("encoder_embed", "decoder_embed"),
        "positions": ("pos_encoding",), "output": "fc_out", "projections": ("W_Q", "W_K", "W_V", "W_O"),
        "bias": False, "ffn": "ffn", "up_down": ("linear1", "linear2"), "norm": own_norm, "scaled": False,
    },
    "S1": _USUAL | {
        "layers": ("encoder.layers", "decoder.layers"), "tables": ("encoder.embedding", "decoder.embedding"),
        "positions": ("encoder.pos_encoding", "decoder.pos_encoding"), "output": "fc_out",
        "projections": ("w_q", "w_k", "w_v", "w_o"), "bias": True, "ffn": "ff", "up_down": ("linear1", "linear2"),
        "norm": nn.LayerNorm, "scaled": True,
    },
    "S4": _USUAL | {
        "layers": ("encoder_layers", "decoder_layers"), "tables": ("encoder_embedding", "decoder_embedding"),
        "positions": ("positional_encoding",), "output": "fc", "projections": ("W_q", "W_k", "W_v", "W_o"),
        "bias": True, "ffn": "feed_forward", "up_down": ("fc1", "fc2"), "norm": nn.LayerNorm, "scaled": False,
    },
}  # fmt: skip
STYLES["S0 with torch's norms and S4's projections"] = STYLES["S0"] | {
    "norm": nn.LayerNorm, "projections": ("W_q", "W_k", "W_v", "W_o"),
}  # fmt: skip
ANNOTATED = {
    "layers": ("encoder.layers", "decoder.layers"), "tables": ("src_embed.0.lut", "tgt_embed.0.lut"),
    "positions": ("src_embed.1", "tgt_embed.1"), "output": "generator.proj",
    "projections": ("linears.0", "linears.1", "linears.2", "linears.3"), "bias": True, "ffn": "feed_forward",
    "up_down": ("w_1", "w_2"), "norm": DeviationNorm, "scaled": True, "cross": "src_attn",
    "norms": ("sublayer.0.norm", "sublayer.1.norm", "sublayer.2.norm"),
    "last": ("encoder.norm", "decoder.norm"),
}  # fmt: skip


def Annotated(**sizes):  # noqa: N802  (it stands for a class)
    return Article(ANNOTATED, **{"layers": (2, 3)} | sizes)


def at_random(model, seed=0):
    """The model in evaluation mode, with no parameter at a value that would hide a mistake."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model.requires_grad_(False).eval()


S4_NAMES = (
    ("src_table", "embedding.weight"), ("output_table", "fc.weight"), ("output_bias", "fc.bias"),
    (".embedding.positions.table", ".pos_embedding.weight"), (".layers.", "_layers."),
    ("ffn.up_proj", "feed_forward.fc1"), ("ffn.down_proj", "feed_forward.fc2"),
    ("cross_attn_residual.norm", "norm2"), ("self_attn_residual.norm", "norm1"), ("final_norm", "norm"),
    ("q_proj", "W_q"), ("k_proj", "W_k"), ("v_proj", "W_v"), ("out_proj", "W_o"),
)  # fmt: skip


def as_a_tutorial(model):
    """What a reader of S4 would have saved of a model of ours; a table that both sides share has three names."""
    both = bool(model.config.n_encoder_layers and model.config.n_decoder_layers)
    state = dict(model.state_dict())
    tables = ("encoder_embedding", "decoder_embedding", "fc") if both else ()
    made = {f"{name}.weight": state["src_table"] for name in tables}
    for ours, tensor in state.items():
        if ours == "src_table" and both:
            continue
        name = ours.replace("ffn_residual.norm", "norm3" if both and ours.startswith("decoder") else "norm2")
        for old, new in S4_NAMES:
            name = name.replace(old, new)
        made[name] = tensor
    return made
