"""GPT-2, GPT-NeoX and Pythia: decoder-only models whose queries, keys and values are one tensor of the file.

GPT-2's matrices are stored as [in, out]. GPT-NeoX has parallel sub-layers, and rotates a part of each head.

Sources: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); Black et al., "GPT-NeoX-20B"
(2022); Biderman et al., "Pythia" (2023). The names are those of transformers 5.23.
"""

from collections.abc import Mapping

from glassformer.extensions.huggingface.llama_like import rotary
from glassformer.extensions.importers.library.config_settings import Family, Fields, Known, Present, Settings, always
from glassformer.extensions.importers.library.keys import SPLIT_COLUMNS, SPLIT_HEADS, TRANSPOSED, KeyTable
from glassformer.extensions.importers.library.renaming import FORMULA, MASK, Becomes, in_layers, renamed
from transformer.i18n import say
from transformer.model.config import MAX_LAYERS

_GPT2_NAMES: Mapping[str, Becomes] = {
    "wte.weight": "?input",
    "wpe.weight": "decoder.embedding.positions.table",
    "ln_f.{p}": "decoder.final_norm.{p}",
    "h.{n}.ln_{1,2}.{p}": "decoder.layers.{n}.{self_attn,ffn}_residual.norm.{p}",
    "h.{n}.{attn.c_proj,mlp.c_fc,mlp.c_proj}.bias": "decoder.layers.{n}.{self_attn.out,ffn.up,ffn.down}_proj.bias",
    "h.{n}.{attn.c_proj,mlp.c_fc,mlp.c_proj}.weight": (
        TRANSPOSED, "decoder.layers.{n}.{self_attn.out,ffn.up,ffn.down}_proj.weight",
    ),
    "h.{n}.attn.c_attn.{p}": (SPLIT_COLUMNS, "decoder.layers.{n}.self_attn.{q,k,v}_proj.{p}"),
    "h.{n}.attn.{bias,masked_bias}": MASK,
}  # fmt: skip
GPT2 = KeyTable(
    say("A {family} model.", family="GPT-2"),
    (*renamed(_GPT2_NAMES, prefixes=("transformer.", "")), *renamed({"lm_head.weight": "?output"})),
)


def _gpt2(settings: Settings, _: Present) -> Fields:
    """Norms before the sub-layers and one at the end, learned positions."""
    settings.expect("add_cross_attention", False)
    scaled = settings.flag("scale_attn_weights", True)
    settings.expect("scale_attn_by_inverse_layer_idx", False)
    settings.expect("is_decoder", False, True)
    width = settings.whole("n_embd", least=1)
    return {
        **always(n_encoder_layers=0, norm="pre", final_norm=True),
        "n_decoder_layers": settings.whole("n_layer", least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": settings.whole("n_head", least=1),
        "d_ff": settings.whole("n_inner", 4 * width.value, null=4 * width.value, least=1),
        **settings.vocabulary(),
        "max_len": settings.whole("n_positions", least=1),
        "activation": settings.word("activation_function", "gelu_new"),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
        **always(bias=True, positions="learned", scale_embedding=False),
        **({} if scaled.value else {"score_scale": Known(1.0, scaled.evidence)}),
    }


_NEOX_NAMES: Mapping[str, Becomes] = {
    "embed_in.weight": "?input",
    "final_layer_norm.{p}": "decoder.final_norm.{p}",
    **in_layers("layers", "decoder", {
        "{input,post_attention}_layernorm": "{self_attn,ffn}_residual.norm",
        "{attention.dense,mlp.dense_h_to_4h,mlp.dense_4h_to_h}": "{self_attn.out,ffn.up,ffn.down}_proj",
    }),
    "layers.{n}.attention.query_key_value.{p}": (SPLIT_HEADS, "decoder.layers.{n}.self_attn.{q,k,v}_proj.{p}"),
    "layers.{n}.attention.{bias,masked_bias}": MASK,
    "layers.{n}.attention.rotary_emb.inv_freq": FORMULA,
    "rotary_emb.inv_freq": FORMULA,
}  # fmt: skip
NEOX = KeyTable(
    say("A GPT-NeoX or Pythia model."),
    (*renamed(_NEOX_NAMES, prefixes=("gpt_neox.", "")), *renamed({"{embed_out,lm_head}.weight": "?output"})),
)


def _neox(settings: Settings, _: Present) -> Fields:
    """Norms before the sub-layers and one at the end; biases everywhere, or not in the attention."""
    settings.expect("is_decoder", False, True)
    bias = settings.flag("attention_bias", True)
    return {
        **always(n_encoder_layers=0, norm="pre", final_norm=True, bias=True, positions="rotary", scale_embedding=False),
        **settings.sizes({"n_decoder_layers": "num_hidden_layers", **settings.USUAL}),
        **settings.vocabulary(),
        "activation": settings.word("hidden_act"),
        "norm_eps": settings.number("layer_norm_eps", 1e-5),
        "attention_bias": bias,
        "attention_output_bias": bias,
        "parallel_residual": settings.flag("use_parallel_residual", True),
        "rotary": rotary(settings, share=0.25, share_key="rotary_pct", base_key="rotary_emb_base"),
    }


FAMILIES = {"gpt2": Family("GPT-2", GPT2, _gpt2, ids={"bos_token_id": 50256}, vocabularies=("gpt2",))}
NEOX_FAMILIES = {
    "gpt_neox": Family("GPT-NeoX", NEOX, _neox, ids={"bos_token_id": 0}, vocabularies=("json",), tied=False)
}
