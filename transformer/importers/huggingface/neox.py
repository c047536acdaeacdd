"""GPT-NeoX and Pythia: decoders alone whose sub-layers stand beside each other, and whose heads turn in part.

Source: Black et al., "GPT-NeoX-20B" (2022); Biderman et al., "Pythia" (2023). The names are those of transformers
5.23.
"""

from transformer.importers.huggingface.config_settings import Fields, Settings, fixed
from transformer.importers.huggingface.family import Family, Present
from transformer.importers.huggingface.renaming import FORMULA, INPUT, MASK, OUTPUT, joined_rules, renamed, unused
from transformer.importers.huggingface.rotary_config import rotary
from transformer.importers.keys import Rule, Table
from transformer.importers.reshapes import SPLIT_HEADS
from transformer.model.config import MAX_LAYERS
from words import say

PREFIXES = ("gpt_neox.", "")
LAYER = "decoder.layers.{n}"
NAMES = {
    "embed_in.weight": INPUT,
    "final_layer_norm.{p}": "decoder.final_norm.{p}",
    "layers.{n}.input_layernorm.{p}": f"{LAYER}.self_attn_residual.norm.{{p}}",
    "layers.{n}.post_attention_layernorm.{p}": f"{LAYER}.ffn_residual.norm.{{p}}",
    "layers.{n}.attention.dense.{p}": f"{LAYER}.self_attn.out_proj.{{p}}",
    "layers.{n}.mlp.dense_h_to_4h.{p}": f"{LAYER}.ffn.up_proj.{{p}}",
    "layers.{n}.mlp.dense_4h_to_h.{p}": f"{LAYER}.ffn.down_proj.{{p}}",
}
JOINED = tuple(joined_rules("layers.{n}.attention.query_key_value", LAYER, prefixes=PREFIXES, reshape=SPLIT_HEADS))
NEOX = Table(
    say("A GPT-NeoX or Pythia model."),
    (
        *renamed(NAMES, prefixes=PREFIXES),
        *JOINED,
        Rule.of("embed_out.weight", OUTPUT),
        Rule.of("lm_head.weight", OUTPUT),
    ),
    (
        *unused(MASK, "layers.{n}.attention.bias", "layers.{n}.attention.masked_bias", prefixes=PREFIXES),
        *unused(FORMULA, "layers.{n}.attention.rotary_emb.inv_freq", "rotary_emb.inv_freq", prefixes=PREFIXES),
    ),
)


def fields(settings: Settings, _: Present) -> Fields:
    """Norms before the sub-layers and one at the end; biases everywhere, or not in the attention."""
    settings.expect("is_decoder", False, True)
    size, bias = settings.whole("vocab_size", least=1), settings.flag("attention_bias", True)
    return {
        "n_encoder_layers": fixed(0),
        "n_decoder_layers": settings.whole("num_hidden_layers", least=1, most=MAX_LAYERS),
        "d_model": settings.whole("hidden_size", least=1),
        "n_heads": settings.whole("num_attention_heads", least=1),
        "d_ff": settings.whole("intermediate_size", least=1),
        "src_vocab_size": size,
        "tgt_vocab_size": size,
        "max_len": settings.whole("max_position_embeddings", least=1),
        "activation": settings.word("hidden_act"),
        "norm": fixed("pre"),
        "final_norm": fixed(True),
        "norm_eps": settings.number("layer_norm_eps", 1e-5),
        "bias": fixed(True),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "parallel_residual": settings.flag("use_parallel_residual", True),
        "positions": fixed("rotary"),
        "rotary": rotary(settings, share=0.25, share_key="rotary_pct", base_key="rotary_emb_base"),
        "scale_embedding": fixed(False),
    }


FAMILIES = {
    "gpt_neox": Family(
        "GPT-NeoX",
        lambda _: NEOX,
        fields,
        ids={"bos_token_id": 0},
        vocabularies=("json",),
        tied=False,
    )
}
