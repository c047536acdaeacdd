"""T5 in its first version and in 1.1 (with flan and ByT5), and mT5: encoder-decoders with a bias for each distance.

Sources: Raffel et al. (2020); Shazeer, "GLU Variants Improve Transformer" (2020) for 1.1; Xue et al., "mT5" (2021).
The names are those of transformers 5.23.
"""

from collections.abc import Iterator

from glassformer.extensions.importers.library.config_settings import (
    ACTIVATIONS,
    Family,
    Fields,
    Known,
    Present,
    Settings,
    always,
)
from glassformer.extensions.importers.library.keys import KeyTable, Rule, Unused
from glassformer.extensions.importers.library.renaming import INPUT, OUTPUT, SOURCE, TARGET, renamed
from transformer.i18n import say
from transformer.model.config import MAX_LAYERS

MAX_LEN = 512  # where the config does not say it: texts may be longer, as nothing has a place of its own
PROJECTIONS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
SUBLAYERS = {
    "encoder": {"SelfAttention": "self_attn"},
    "decoder": {"SelfAttention": "self_attn", "EncDecAttention": "cross_attn"},
}
# What feed_forward_proj says -> the non-linearity; "gated-gelu" stands for the approximation.
PLAIN = ACTIVATIONS
GATED = {f"gated-{name}": ours for name, ours in ACTIVATIONS.items()} | {"gated-gelu": "gelu_tanh"}


def _rules() -> Iterator[Rule]:
    yield from renamed({"shared.weight": INPUT, "lm_head.weight": OUTPUT})
    for (stack, sublayers), role in zip(SUBLAYERS.items(), (SOURCE, TARGET), strict=True):
        block, layer, last = f"{stack}.block.{{n}}.layer", f"{stack}.layers.{{n}}", len(sublayers)
        names = {
            f"{stack}.embed_tokens.weight": role,
            f"{stack}.final_layer_norm.weight": f"{stack}.final_norm.weight",
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": f"{stack}.order.table",
            f"{block}.{last}.layer_norm.weight": f"{layer}.ffn_residual.norm.weight",
            f"{block}.{last}.DenseReluDense.wi.weight": f"{layer}.ffn.up_proj.weight",
            f"{block}.{last}.DenseReluDense.wi_0.weight": f"{layer}.ffn.gate_proj.weight",
            f"{block}.{last}.DenseReluDense.wi_1.weight": f"{layer}.ffn.up_proj.weight",
            f"{block}.{last}.DenseReluDense.wo.weight": f"{layer}.ffn.down_proj.weight",
        }
        for i, (theirs, ours) in enumerate(sublayers.items()):
            names[f"{block}.{i}.layer_norm.weight"] = f"{layer}.{ours}_residual.norm.weight"
            for one, projection in PROJECTIONS.items():
                names[f"{block}.{i}.{theirs}.{one}.weight"] = f"{layer}.{ours}.{projection}.weight"
        yield from renamed(names)


T5 = KeyTable(
    say("A T5 model."),
    tuple(_rules()),
    (
        Unused(
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
            say("cross-attention uses no positions, so the original program ignores this tensor"),
        ),
    ),
)


def t5(settings: Settings, _: Present) -> Fields:
    """T5: where the output is the table of embeddings, the last vectors are scaled down."""
    said = _shared(settings)
    tied = settings.flag("tie_word_embeddings", True)
    scaled = settings.flag("scale_decoder_outputs", tied)
    scale = said["d_model"].value ** -0.5 if scaled.value else 1.0
    return {**said, "output_scale": Known(scale, scaled.evidence)}


def mt5(settings: Settings, _: Present) -> Fields:
    """mT5, whose last vectors are never scaled."""
    settings.raw("scale_decoder_outputs")
    return _shared(settings, "gated-gelu")


def _shared(settings: Settings, absent: str = "relu") -> Fields:
    settings.expect("is_decoder", False)
    layers = settings.whole("num_layers", least=1, most=MAX_LAYERS)
    gated = str(settings.raw("feed_forward_proj", absent)).startswith("gated-")
    activation = settings.word("feed_forward_proj", absent, names=GATED if gated else PLAIN)
    # Newer versions write what follows from feed_forward_proj, and read it where it stands.
    settings.expect("is_gated_act", gated)
    derived = settings.raw("dense_act_fn", activation.value)
    if derived != activation.value and ACTIVATIONS.get(str(derived)) != activation.value:
        raise settings.refused("dense_act_fn", derived, say("a value that agrees with feed_forward_proj"))
    why = say(
        "config.json gives no limit; only the distances between positions matter, so texts may be longer than this"
    )
    return {
        "n_encoder_layers": layers,
        "n_decoder_layers": settings.whole("num_decoder_layers", layers, null=layers, least=1, most=MAX_LAYERS),
        "d_model": settings.whole("d_model", least=1),
        "d_head": settings.whole("d_kv", least=1),
        "n_heads": settings.whole("num_heads", least=1),
        "d_ff": settings.whole("d_ff", least=1),
        **settings.vocabulary(),
        "max_len": settings.whole("n_positions", Known(MAX_LEN, why), least=1),
        **always(norm="pre", norm_kind="rms", final_norm=True),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-6),
        "activation": activation,
        "gated": Known(gated, activation.evidence),
        **always(bias=False, positions="relative"),
        "relative_buckets": settings.whole("relative_attention_num_buckets", 32, least=1),
        "relative_distance": settings.whole("relative_attention_max_distance", 128, least=1),
        **always(score_scale=1.0, scale_embedding=False),
    }


_IDS = {"pad_token_id": 0, "decoder_start_token_id": 0}
FAMILIES = {
    "t5": Family("T5", T5, t5, ids=_IDS, vocabularies=("t5",)),
    "mt5": Family("mT5", T5, mt5, ids=_IDS, vocabularies=("t5",)),
}
