"""Key table of the tensor names that tutorials teach, and matches of encoder-only and decoder-only models.

The Annotated Transformer (Rush et al., 2018 and 2022), models around PyTorch's own layers with the user's embeddings
and output, and articles that write the model out. Each component has its list of names, the most usual first: a model
may have its layers from one, its norms from another.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from glassformer.extensions.importers.library.keys import (
    AS_IS,
    FLATTENED,
    FLATTENED_FOR_BOTH,
    FOR_BOTH,
    ONE_MAP,
    SPLIT_ROWS,
    KeyTable,
    Match,
    MatchedTensor,
    Reshape,
    Rule,
    Unused,
)
from transformer.i18n import say

Names = Mapping[str, Sequence[str]]

LAYERS: Names = {
    "encoder": ("encoder.layers", "encoder_layers", "transformer.encoder.layers", "transformer_encoder.layers",
                "encoder.layer", "encoder.blocks", "encoder_blocks", "blocks", "layers"),
    "decoder": ("decoder.layers", "decoder_layers", "transformer.decoder.layers", "transformer_decoder.layers",
                "decoder.layer", "decoder.blocks", "decoder_blocks"),
}  # fmt: skip
FINAL_NORMS: Names = {
    stack: (f"{stack}.norm", f"transformer.{stack}.norm", f"transformer_{stack}.norm", f"{stack}_norm",
            f"{stack}.final_norm", f"{stack}.layer_norm", f"{stack}.ln")
    for stack in LAYERS
}  # fmt: skip

# One layer by itself, without a number.
ONE_LAYER = ("", "block.", "encoder_block.", "encoder_layer.", "layer.")

# Inside a layer.
ATTENTIONS: Names = {
    "self_attn": ("self_attn", "self_attention", "attention", "attn", "mha",
                  "self_attention_block"),
    "cross_attn": ("cross_attn", "src_attn", "multihead_attn", "cross_attention", "encoder_attn", "enc_attn",
                   "encoder_attention", "enc_dec_attention", "cross_attention_block"),
}  # fmt: skip
PROJECTIONS: Names = {
    "q_proj": ("W_q", "w_q", "W_Q", "linears.0", "q_proj", "q_linear", "wq", "query", "query_proj"),
    "k_proj": ("W_k", "w_k", "W_K", "linears.1", "k_proj", "k_linear", "wk", "key", "key_proj"),
    "v_proj": ("W_v", "w_v", "W_V", "linears.2", "v_proj", "v_linear", "wv", "value", "value_proj"),
    "out_proj": ("W_o", "w_o", "W_O", "linears.3", "out_proj", "out", "wo", "fc_out", "o_proj", "out_linear"),
}
FEED_FORWARDS = ("", "ffn.", "ff.", "feed_forward.", "mlp.", "ff.net.", "ffn.net.", "feed_forward_block.")
UP_DOWN = (("linear1", "linear2"), ("fc1", "fc2"), ("w_1", "w_2"), ("linear_1", "linear_2"), ("w1", "w2"))
IN_A_ROW = (("0", "2"), ("0", "3"))  # nn.Sequential, without and with dropout

COUNTED_FROM_0 = ("sublayer.{}.norm", "residual_connections.{}.norm")
NORMS = ("norm{}", "ln{}", "layer_norm{}", "layernorm{}", "norm_{}", "ln_{}", "layer_norm_{}", *COUNTED_FROM_0)
ORDER = {"encoder": ("self_attn", "ffn"), "decoder": ("self_attn", "cross_attn", "ffn")}
# The scale and the shift of a norm. All but the first divide by the deviation plus epsilon, and that with gamma by the
# biased deviation.
SCALES = (("weight", "bias"), ("gamma", "beta"), ("a_2", "b_2"), ("alpha", "bias"))

# Around the stacks.
TABLES: Names = {
    "src_table": ("src_embed.0.lut", "encoder_embed", "encoder.embedding", "encoder_embedding", "src_embedding",
                  "src_embed", "src_emb", "src_tok_emb.embedding", "src_tok_emb", "source_embedding", "embedding",
                  "embed", "token_embedding", "tok_emb", "shared_embedding", "encoder.embed", "encoder.tok_embedding",
                  "src_embed.embedding", "encoder.token_embedding", "embeddings", "emb"),
    "tgt_table": ("tgt_embed.0.lut", "decoder_embed", "decoder.embedding", "decoder_embedding", "tgt_embedding",
                  "tgt_embed", "tgt_emb", "tgt_tok_emb.embedding", "tgt_tok_emb", "target_embedding", "trg_embedding",
                  "trg_embed", "trg_emb", "decoder.embed", "decoder.tok_embedding", "tgt_embed.embedding",
                  "decoder.token_embedding"),
    "output_table": ("generator.proj", "fc_out", "fc", "generator", "out", "linear", "output", "output_layer",
                     "output_projection", "proj", "projection", "final_linear", "linear_out", "head", "lm_head",
                     "decoder.fc_out", "out_proj", "projection_layer.proj", "projection_layer"),
}  # fmt: skip
POSITIONS = ("pos_encoding", "positional_encoding", "pos_encoder", "position_encoding", "pos_enc", "pe", "pos_embed",
             "pos_embedding", "pos_emb", "position_embedding", "positional_embedding", "pos")  # fmt: skip
SIDES: Names = {  # before or instead of the names above, when each side has positions of its own
    "encoder": ("encoder.", "src_", "encoder_", "src_embed.1.", "source_"),
    "decoder": ("decoder.", "tgt_", "decoder_", "tgt_embed.1.", "trg_", "target_"),
}
POSITION_TABLES = (".pe", ".pos_embedding", ".weight", ".pos_table", ".encoding", "")
POSITION_OF = {stack: f"{stack}.embedding.positions.table" for stack in LAYERS}


def _places() -> Iterator[tuple[str, str, str]]:
    """Where layers stand: the stack, and what names begin with there and in our model."""
    for stack, layers in LAYERS.items():
        yield from ((stack, f"{place}.{{n}}.", f"{stack}.layers.{{n}}.") for place in layers)
    yield from (("encoder", place, "encoder.layers.0.") for place in ONE_LAYER)


def _attentions() -> Iterator[Rule]:
    for (_, place, layer), (ours, theirs) in product(_places(), ATTENTIONS.items()):
        for name in theirs:
            before, to = f"{place}{name}", f"{layer}{ours}"
            for projection, called in PROJECTIONS.items():
                for one in called:
                    yield Rule.of(f"{before}.{one}.{{p}}", f"{to}.{projection}.{{p}}")
            for kind in ("weight", "bias"):  # of nn.MultiheadAttention
                three = (f"{to}.{projection}.{kind}" for projection in ("q_proj", "k_proj", "v_proj"))
                yield Rule.of(f"{before}.in_proj_{kind}", *three, reshape=SPLIT_ROWS)


def _feed_forwards() -> Iterator[Rule]:
    for _, place, layer in _places():
        for inside in FEED_FORWARDS:
            for pair in (*UP_DOWN, *(IN_A_ROW if inside else ())):
                for theirs, ours in zip(pair, ("up_proj", "down_proj"), strict=True):
                    yield Rule.of(f"{place}{inside}{theirs}.{{p}}", f"{layer}ffn.{ours}.{{p}}")
            if inside.count(".") == 1:  # one map instead of two
                both = (f"{layer}ffn.up_proj.{{p}}", f"{layer}ffn.down_proj.{{p}}")
                yield Rule.of(f"{place}{inside}{{p}}", *both, reshape=ONE_MAP)


def _norms() -> Iterator[Rule]:
    for stack, place, layer in _places():
        for name, (i, part) in product(NORMS, enumerate(ORDER[stack])):
            theirs = f"{place}{name.format(i + (name not in COUNTED_FROM_0))}"
            yield from _norm(theirs, f"{layer}{part}_residual.norm")
    for stack, names in FINAL_NORMS.items():
        for name in names:
            yield from _norm(name, f"{stack}.final_norm")


def _norm(theirs: str, ours: str) -> Iterator[Rule]:
    for scale, shift in SCALES:
        yield Rule.of(f"{theirs}.{scale}", f"{ours}.weight")
        if (scale, shift) != ("alpha", "bias"):  # "bias" is said already
            yield Rule.of(f"{theirs}.{shift}", f"{ours}.bias")


def _tables() -> Iterator[Rule]:
    for ours, names in TABLES.items():
        for name in names:
            yield Rule.of(f"{name}.weight", ours)
            if ours == "output_table":
                yield Rule.of(f"{name}.bias", "output_bias")


def _positions() -> Iterator[Rule]:
    both = tuple(POSITION_OF.values())
    for name, table in product(POSITIONS, POSITION_TABLES):
        yield Rule.of(name + table, *both, reshape=FOR_BOTH if table == ".weight" else FLATTENED_FOR_BOTH)
        for stack, before in SIDES.items():
            how: Reshape = AS_IS if table == ".weight" else FLATTENED
            yield from (Rule.of(side + name + table, POSITION_OF[stack], reshape=how) for side in before)
    for stack, side in zip(LAYERS, ("src", "tgt"), strict=True):  # of The Annotated Transformer
        yield Rule.of(f"{side}_embed.1.pe", POSITION_OF[stack], reshape=FLATTENED)


@cache
def tutorials() -> KeyTable:
    """All rules; thousands, so they are made when the first file is read."""
    return KeyTable(
        name=say("An encoder and a decoder whose tensors have names from tutorials."),
        rules=(*_attentions(), *_feed_forwards(), *_norms(), *_tables(), *_positions()),
        unused=tuple(
            Unused(name, say("it is a mask, rebuilt for each text")) for name in ("src_mask", "tgt_mask", "mask")
        ),
    )


ALONE = {
    "encoder": say("An encoder whose tensors have names from tutorials."),
    "decoder": say("A decoder whose tensors have names from tutorials."),
}


def alone(found: Match) -> Match:
    """The match of an encoder-only or decoder-only model, whose parts have other places than in two stacks.

    A decoder without an encoder has two norms in a layer, and its table is the only one; a table of positions is for
    one side. An encoder-only model's output is left over: it may be a head for classes, or the output of a decoder that
    was built from encoder layers.
    """
    stacks = [stack for stack in LAYERS if found.n_layers(stack)]
    if len(stacks) != 1:
        return found
    (stack,) = stacks
    two_norms = not any(".cross_attn." in name for name in found.sources)
    found = _with_final_norm(found, stack)
    outputs = {"output_table", "output_bias"} if stack == "encoder" else set()
    table = replace(found.table, name=ALONE[stack])
    if POSITION_OF[stack] in found.sources:  # a table of the other side's does not count as a second one
        outputs |= set(POSITION_OF.values()) - {POSITION_OF[stack]}
    found = found.leaving([one.source for one in found.taken if set(one.targets) <= outputs])
    one_table = "src_table" not in found.sources
    taken = tuple(_alone(one, stack, two_norms=two_norms, one_table=one_table) for one in found.taken)
    return replace(found, table=table, taken=taken)


def _with_final_norm(found: Match, stack: str) -> Match:
    """The match in which a norm beside the only stack's layers is its own: nn.TransformerEncoder's, in a decoder."""
    (other,) = {*LAYERS} - {stack}
    ours, theirs = f"{stack}.final_norm.", f"{other}.final_norm."
    beside = tuple(re.sub(r"layers\.(\d+\.)?$", "", begin) for begin in found.layers)
    its = [one.source for one in found.taken if one.targets[0].startswith(theirs)]
    if any(name.startswith(ours) for name in found.sources) or not all(name.startswith(beside) for name in its):
        return found.leaving(its)
    taken = (replace(one, targets=tuple(name.replace(theirs, ours) for name in one.targets)) for one in found.taken)
    return replace(found, taken=tuple(taken))


def _alone(one: MatchedTensor, stack: str, *, two_norms: bool, one_table: bool) -> MatchedTensor:
    if set(one.targets) & set(POSITION_OF.values()):
        return MatchedTensor(one.source, (POSITION_OF[stack],), FLATTENED)
    (target, *rest) = one.targets
    if two_norms:
        target = target.replace("cross_attn_residual", "ffn_residual")
    if one_table and target == "tgt_table":
        target = "src_table"
    return MatchedTensor(one.source, (target, *rest), one.reshape)
