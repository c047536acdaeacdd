"""GPT-2: a decoder alone, whose matrices are stored as [in, out].

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); the names are those of
transformers 5.23.
"""

from transformer.importers.huggingface.config_settings import Fields, Known, Settings, fixed
from transformer.importers.huggingface.family import Family, Present
from transformer.importers.huggingface.renaming import INPUT, MASK, OUTPUT, joined_rules, renamed, unused
from transformer.importers.keys import Rule, Table
from transformer.importers.reshapes import SPLIT_COLUMNS, TRANSPOSED
from transformer.model.config import MAX_LAYERS
from words import say

PREFIXES = ("transformer.", "")
LAYER = "decoder.layers.{n}"

AS_THEY_ARE = {
    "wte.weight": INPUT,
    "wpe.weight": "decoder.embedding.positions.table",
    "ln_f.{p}": "decoder.final_norm.{p}",
    "h.{n}.ln_1.{p}": f"{LAYER}.self_attn_residual.norm.{{p}}",
    "h.{n}.ln_2.{p}": f"{LAYER}.ffn_residual.norm.{{p}}",
    "h.{n}.attn.c_proj.bias": f"{LAYER}.self_attn.out_proj.bias",
    "h.{n}.mlp.c_fc.bias": f"{LAYER}.ffn.up_proj.bias",
    "h.{n}.mlp.c_proj.bias": f"{LAYER}.ffn.down_proj.bias",
}
FROM_COLUMNS = {
    "h.{n}.attn.c_proj.weight": f"{LAYER}.self_attn.out_proj.weight",
    "h.{n}.mlp.c_fc.weight": f"{LAYER}.ffn.up_proj.weight",
    "h.{n}.mlp.c_proj.weight": f"{LAYER}.ffn.down_proj.weight",
}
JOINED = tuple(joined_rules("h.{n}.attn.c_attn", LAYER, prefixes=PREFIXES, reshape=SPLIT_COLUMNS))

GPT2 = Table(
    say("A GPT-2 model."),
    (
        *renamed(AS_THEY_ARE, prefixes=PREFIXES),
        *renamed(FROM_COLUMNS, prefixes=PREFIXES, reshape=TRANSPOSED),
        *JOINED,
        Rule.of("lm_head.weight", OUTPUT),
    ),
    tuple(unused(MASK, "h.{n}.attn.bias", "h.{n}.attn.masked_bias", prefixes=PREFIXES)),
)


def fields(settings: Settings, _: Present) -> Fields:
    """Norms before the sub-layers and one at the end, learned positions."""
    settings.expect("add_cross_attention", False)
    scaled = settings.flag("scale_attn_weights", True)
    settings.expect("scale_attn_by_inverse_layer_idx", False)
    settings.expect("is_decoder", False, True)
    width, size = settings.whole("n_embd", least=1), settings.whole("vocab_size", least=1)
    four_times = fixed(4 * width.value)
    return {
        "n_encoder_layers": fixed(0),
        "n_decoder_layers": settings.whole("n_layer", least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": settings.whole("n_head", least=1),
        "d_ff": settings.whole("n_inner", four_times, null=four_times, least=1),
        "src_vocab_size": size,
        "tgt_vocab_size": size,
        "max_len": settings.whole("n_positions", least=1),
        "activation": settings.word("activation_function", "gelu_new"),
        "norm": fixed("pre"),
        "final_norm": fixed(True),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
        "bias": fixed(True),
        "positions": fixed("learned"),
        "scale_embedding": fixed(False),
        **({} if scaled.value else {"score_scale": Known(1.0, scaled.evidence)}),
    }


FAMILIES = {
    "gpt2": Family(
        "GPT-2",
        lambda _: GPT2,
        fields,
        ids={"bos_token_id": 50256},
        vocabularies=("gpt2",),
    )
}
