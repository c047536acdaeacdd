"""Gemma 1, 2 and 3 (text): LLaMA's names, with norms that scale by 1 + w and, from 2 on, a second norm a sub-layer.

Sources: Gemma Team, "Gemma" (2024), "Gemma 2" (2024) and "Gemma 3" (2025). The names are those of transformers 5.23.
"""

from collections.abc import Mapping

from transformer.importers.huggingface.config_settings import ACTIVATIONS, Fields, Known, Settings, fixed
from transformer.importers.huggingface.family import Family, Present
from transformer.importers.huggingface.llama_like import (
    FREQUENCIES,
    FULL,
    HEAD,
    LAYER,
    NORMS,
    NORMS_OF_HEADS,
    PLAIN,
    PREFIXES,
    SLIDING,
    attention_bias,
    decoder,
    layer_types,
    windows,
)
from transformer.importers.huggingface.renaming import renamed
from transformer.importers.huggingface.rotary_config import NEW, SCALED, made, of_record, record_of, rotary
from transformer.importers.keys import Table
from transformer.importers.reshapes import PLUS_ONE
from words import Sentence, say

FOUR_NORMS = {
    "layers.{n}.input_layernorm.weight": f"{LAYER}.self_attn_residual.norm.weight",
    "layers.{n}.post_attention_layernorm.weight": f"{LAYER}.self_attn_residual.output_norm.weight",
    "layers.{n}.pre_feedforward_layernorm.weight": f"{LAYER}.ffn_residual.norm.weight",
    "layers.{n}.post_feedforward_layernorm.weight": f"{LAYER}.ffn_residual.output_norm.weight",
    "norm.weight": "decoder.final_norm.weight",
}
APPROXIMATE = "gelu_pytorch_tanh"
TANH = {**ACTIVATIONS, "gelu": "gelu_tanh"}  # the first configs said gelu, and meant the approximation


def _table(name: Sentence, norms: Mapping[str, str]) -> Table:
    plain = renamed(PLAIN, prefixes=PREFIXES)
    return Table(name, (*plain, *renamed(norms, prefixes=PREFIXES, reshape=PLUS_ONE), HEAD), FREQUENCIES)


GEMMA = _table(say("A Gemma model."), NORMS)
GEMMA_2 = _table(say("A Gemma 2 or 3 model."), FOUR_NORMS | NORMS_OF_HEADS)


def _shared(settings: Settings) -> Fields:
    return {**decoder(settings), **attention_bias(settings), "scale_embedding": fixed(True)}


def gemma(settings: Settings, _: Present) -> Fields:
    """Gemma 1. Version 4 knew two keys for the non-linearity, of which version 5 reads the first."""
    activation = settings.word("hidden_act", APPROXIMATE, names=TANH)
    second = settings.raw("hidden_activation")
    if second is not None and TANH.get(str(second)) != activation.value:
        raise settings.refused("hidden_activation", second, say("what hidden_act says"))
    return {**_shared(settings), "activation": activation, "rotary": rotary(settings)}


def _further(settings: Settings) -> Fields:
    """What 2 and 3 share."""
    settings.raw("hidden_act")  # they read the other key
    scalar = settings.number("query_pre_attn_scalar")
    if scalar.value <= 0:
        raise settings.refused("query_pre_attn_scalar", scalar.value, say("a number above 0"))
    activation = settings.word("hidden_activation", APPROXIMATE)
    said = {**_shared(settings), "activation": activation, "norm": fixed("both")}
    return {**said, "score_scale": Known(scalar.value**-0.5, scalar.evidence)}


def _cap(settings: Settings, key: str, absent: float | None) -> Known:
    if settings.raw(key, absent) is None:
        return Known(None, say("{key} in config.json", key=key))
    return settings.number(key, absent)


def gemma_2(settings: Settings, _: Present) -> Fields:
    """Gemma 2: scores and logits have caps, and every other layer has a window."""
    said = _further(settings)
    n = said["n_decoder_layers"].value
    kinds = layer_types(settings, n, [FULL if i % 2 else SLIDING for i in range(n)])
    return {
        **said,
        "rotary": rotary(settings),
        "score_cap": _cap(settings, "attn_logit_softcapping", 50.0),
        "logit_cap": _cap(settings, "final_logit_softcapping", 30.0),
        "windows": windows(settings, kinds, settings.whole("sliding_window", 4096, least=1).value),
    }


def gemma_3(settings: Settings, _: Present) -> Fields:
    """Gemma 3: norms of queries and keys, and layers with a window turn faster."""
    settings.raw("attn_logit_softcapping")  # its program has the key and no such cap
    said = _further(settings)
    n = said["n_decoder_layers"].value
    every = settings.whole("sliding_window_pattern", settings.raw("_sliding_window_pattern", 6), least=1).value
    kinds = layer_types(settings, n, [SLIDING if (i + 1) % every else FULL for i in range(n)])
    return {
        **said,
        "qk_norm": fixed(True),
        "rotary": _by_kind(settings),
        "logit_cap": _cap(settings, "final_logit_softcapping", None),
        "windows": windows(settings, kinds, settings.whole("sliding_window", 4096, least=1).value),
    }


def _by_kind(settings: Settings) -> Known:
    """Rotary positions with a base for each kind of layer: nested in version 5, beside each other in 4."""
    nested, scaled = (record_of(settings, key, settings.raw(key)) for key in (NEW, SCALED))
    for name in nested:
        if name not in (FULL, SLIDING):
            raise settings.refused(
                f"{NEW}.{name}", nested[name], say("{full} and {sliding}", full=FULL, sliding=SLIDING)
            )
    settings.expect("partial_rotary_factor", 1.0, None)
    far, near_said = (record_of(settings, f"{NEW}.{kind}", nested.get(kind)) for kind in (FULL, SLIDING))
    numbers = of_record(settings, NEW, {**far, **scaled}, base=settings.number("rope_theta", 1_000_000.0).value)
    local = settings.number("rope_local_base_freq", 10_000.0)
    near = of_record(settings, NEW, near_said, base=local.value)
    if near["scaling"] != "none":
        raise settings.refused(f"{NEW}.{SLIDING}", nested[SLIDING], say("no scaling"))
    if numbers["scaling"] != "none":
        numbers.setdefault("original_len", settings.whole("max_position_embeddings").value)
    why = (
        say("{key} in config.json", key=NEW) if nested else say("rope_theta and rope_local_base_freq in config.json")
    )
    return Known(made({**numbers, "local_base": near["base"]}, settings, NEW), why)


_IDS = {"pad_token_id": 0, "bos_token_id": 2}
FAMILIES = {
    "gemma": Family("Gemma", lambda _: GEMMA, gemma, ids=_IDS, vocabularies=("json", "llama")),
    "gemma2": Family(
        "Gemma 2",
        lambda _: GEMMA_2,
        gemma_2,
        ids=_IDS,
        vocabularies=("json", "llama"),
        known=("cache_implementation",),
    ),
    "gemma3_text": Family(
        "Gemma 3",
        lambda _: GEMMA_2,
        gemma_3,
        ids=_IDS,
        vocabularies=("json", "llama"),
        known=("cache_implementation",),
    ),
}
