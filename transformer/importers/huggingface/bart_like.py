"""Marian, BART, mBART, Pegasus and M2M100 (with NLLB): five encoder-decoders with one set of names.

They differ in the place of the norms, in a norm after the embedding, and in positions.

Sources: Junczys-Dowmunt et al. (2018) for Marian; Lewis et al., "BART" (2020); Liu et al. (2020) for mBART; Zhang et
al., "PEGASUS" (2020); Fan et al. (2020) for M2M100; the names are those of transformers 5.23.
"""

from collections.abc import Iterator
from itertools import product

from transformer.importers.huggingface.config_settings import Fields, Settings, fixed
from transformer.importers.huggingface.family import Family, Present
from transformer.importers.huggingface.renaming import (
    BIAS,
    FORMULA,
    INPUT,
    ONE_ROW,
    OUTPUT,
    SOURCE,
    TARGET,
    renamed,
    unused,
)
from transformer.importers.keys import Rule, Table
from transformer.importers.reshapes import AS_IS, Reshape, cut_rows
from transformer.model.config import MAX_LAYERS
from words import Sentence, say

PREFIXES = ("model.", "")  # the second where the model was saved without its head
OFFSET = 2  # the first rows of their learned positions are not used
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
ATTENTIONS = {"self_attn": "self_attn", "encoder_attn": "cross_attn"}


def layers(stack: str) -> dict[str, str]:
    """What a stack's layers call their tensors, and what the model does."""
    theirs, ours = f"{stack}.layers.{{n}}", f"{stack}.layers.{{n}}"
    names = {
        f"{theirs}.fc1.{{p}}": f"{ours}.ffn.up_proj.{{p}}",
        f"{theirs}.fc2.{{p}}": f"{ours}.ffn.down_proj.{{p}}",
        f"{theirs}.final_layer_norm.{{p}}": f"{ours}.ffn_residual.norm.{{p}}",
    }
    for attention, own in ATTENTIONS.items():
        names[f"{theirs}.{attention}_layer_norm.{{p}}"] = f"{ours}.{own}_residual.norm.{{p}}"
        for projection in PROJECTIONS:
            names[f"{theirs}.{attention}.{projection}.{{p}}"] = f"{ours}.{own}.{projection}.{{p}}"
    return names


def _rules(positions: Reshape | None) -> Iterator[Rule]:
    for stack, role in (("encoder", SOURCE), ("decoder", TARGET)):
        around = {
            f"{stack}.embed_tokens.weight": role,
            f"{stack}.layer_norm.{{p}}": f"{stack}.final_norm.{{p}}",
            f"{stack}.layernorm_embedding.{{p}}": f"{stack}.embedding.norm.{{p}}",
        }
        yield from renamed(layers(stack) | around, prefixes=PREFIXES)
        if positions:
            table = {f"{stack}.embed_positions.weight": f"{stack}.embedding.positions.table"}
            yield from renamed(table, prefixes=PREFIXES, reshape=positions)
    yield from renamed({"shared.weight": INPUT}, prefixes=PREFIXES)
    yield Rule.of("lm_head.weight", OUTPUT)
    yield Rule.of("final_logits_bias", BIAS, reshape=ONE_ROW)


_OLD = [
    f"{stack}.{name}" for stack, name in product(("encoder", "decoder"), ("version", "embed_positions._float_tensor"))
]
_FORMULAS = [f"{stack}.embed_positions.weights" for stack in ("encoder", "decoder")]
_UNUSED = (
    *unused(say("it is the version of a file format"), *_OLD, prefixes=PREFIXES),
    *unused(FORMULA, *_FORMULAS, prefixes=PREFIXES),
)


def _table(name: Sentence, positions: Reshape | None) -> Table:
    return Table(name, tuple(_rules(positions)), _UNUSED)


MARIAN = _table(say("A model of Marian's."), AS_IS)
BART = _table(say("A model of BART's names."), cut_rows(OFFSET))
PEGASUS = _table(say("A Pegasus model."), AS_IS)
M2M100 = _table(say("An M2M100 or NLLB model."), None)


def _shared(settings: Settings) -> Fields:
    """What all five say alike."""
    settings.expect("is_decoder", False)
    settings.expect("add_cross_attention", False)
    settings.raw("num_hidden_layers")  # it repeats another
    size = settings.whole("vocab_size", least=1)
    return {
        "n_encoder_layers": settings.whole("encoder_layers", least=1, most=MAX_LAYERS),
        "n_decoder_layers": settings.whole("decoder_layers", least=1, most=MAX_LAYERS),
        "d_model": settings.whole("d_model", least=1),
        "n_heads": settings.whole("encoder_attention_heads", least=1),
        "n_decoder_heads": settings.whole("decoder_attention_heads", least=1),
        "d_ff": settings.whole("encoder_ffn_dim", least=1),
        "d_decoder_ff": settings.whole("decoder_ffn_dim", least=1),
        "src_vocab_size": size,
        "tgt_vocab_size": size,
        "activation": settings.word("activation_function"),
        "scale_embedding": settings.flag("scale_embedding", False),
        "max_len": settings.whole("max_position_embeddings", least=1),
        "norm_eps": fixed(1e-5),
        "bias": fixed(True),
    }


def marian(settings: Settings, _: Present) -> Fields:
    """Marian: norms after the sums, sines before cosines; the two sides may have vocabularies of their own."""
    settings.flag("share_encoder_decoder_embeddings", True)  # the tables in the file show it
    own = _shared(settings)
    size = settings.whole("decoder_vocab_size", own["src_vocab_size"], null=own["src_vocab_size"], least=1)
    sinusoids = {"positions": fixed("sinusoidal"), "sinusoid_layout": fixed("halves")}
    return own | sinusoids | {"tgt_vocab_size": size, "norm": fixed("post"), "final_norm": fixed(False)}


def bart(settings: Settings, _: Present) -> Fields:
    """BART: norms after the sums and after the embedding, learned positions."""
    post = {"norm": fixed("post"), "final_norm": fixed(False)}
    return _shared(settings) | post | {"embedding_norm": fixed(True), "positions": fixed("learned")}


def mbart(settings: Settings, _: Present) -> Fields:
    """mBART: norms before the sub-layers, one after the embedding and one at the end, learned positions."""
    pre = {"norm": fixed("pre"), "final_norm": fixed(True)}
    return _shared(settings) | pre | {"embedding_norm": fixed(True), "positions": fixed("learned")}


def pegasus(settings: Settings, _: Present) -> Fields:
    """Pegasus: norms before the sub-layers and one at the end, sines before cosines."""
    pre = {"norm": fixed("pre"), "final_norm": fixed(True)}
    return _shared(settings) | pre | {"positions": fixed("sinusoidal"), "sinusoid_layout": fixed("halves")}


def m2m100(settings: Settings, _: Present) -> Fields:
    """M2M100, NLLB: norms before the sub-layers and one at the end, fairseq's sinusoids."""
    scale = settings.flag("scale_embedding", True)
    pre = {"norm": fixed("pre"), "final_norm": fixed(True), "scale_embedding": scale}
    return _shared(settings) | pre | {"positions": fixed("sinusoidal"), "sinusoid_layout": fixed("fairseq")}


_FAIRSEQ_IDS = {"pad_token_id": 1, "bos_token_id": 0}
FAMILIES = {
    "marian": Family(
        "Marian",
        lambda _: MARIAN,
        marian,
        ids={"pad_token_id": 58100, "decoder_start_token_id": 58100},
        vocabularies=("marian",),
    ),
    "bart": Family("BART", lambda _: BART, bart, ids=_FAIRSEQ_IDS, vocabularies=("roberta",)),
    "mbart": Family("mBART", lambda _: BART, mbart, ids=_FAIRSEQ_IDS, vocabularies=("mbart", "mbart50")),
    "pegasus": Family(
        "Pegasus",
        lambda _: PEGASUS,
        pegasus,
        ids={"pad_token_id": 0, "decoder_start_token_id": 0},
        vocabularies=("pegasus",),
    ),
    "m2m_100": Family(
        "M2M100, NLLB",
        lambda _: M2M100,
        m2m100,
        ids=_FAIRSEQ_IDS,
        vocabularies=("m2m100", "nllb"),
    ),
}
