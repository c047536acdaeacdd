"""Importers of decoder-only models: GPT-2, GPT-NeoX (Pythia), LLaMA, Mistral, Qwen, SmolLM3, Gemma; rotary config.

GPT-2 and GPT-NeoX have queries, keys and values as one tensor of the file; GPT-2's matrices are stored as [in, out].
GPT-NeoX has parallel sub-layers, and rotates a part of each head. Gemma 1, 2 and 3 (text) have LLaMA's names; their
norms scale by 1 + w, and from 2 on each sub-layer has a second norm.

A config.json has rotary positions in the spelling of versions 4 or 5 of transformers:

    4    "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0, ...}
    5    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 32.0, ...}

Sources: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019); Black et al., "GPT-NeoX-20B"
(2022); Biderman et al., "Pythia" (2023); Touvron et al., "LLaMA" (2023) and "Llama 2" (2023), Llama team (2024); Jiang
et al., "Mistral 7B" (2023); Qwen Team, "Qwen2" (2024) and "Qwen3" (2025); Hugging Face, "SmolLM3" (2025); Gemma Team,
"Gemma" (2024), "Gemma 2" (2024) and "Gemma 3" (2025). The names are those of transformers 5.23, rotary positions those
of its `modeling_rope_utils`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from glassformer.extensions.importers.library import config_settings
from glassformer.extensions.importers.library.config_settings import Family, Fields, Known, Present, Settings, always
from glassformer.extensions.importers.library.keys import PLUS_ONE, SPLIT_COLUMNS, SPLIT_HEADS, TRANSPOSED, KeyTable
from glassformer.extensions.importers.library.renaming import FORMULA, MASK, Becomes, in_layers, key_table
from transformer.i18n import Sentence, say, say_n
from transformer.model.attention_features import Rotary

SCALED, NEW = "rope_scaling", "rope_parameters"
_LENGTHS = {"factor": "factor", "original_max_position_embeddings": "original_len"}
# Kinds of scaling: what each is here, and the numbers that its keys are; others are unsupported. "" is read below, or
# means nothing: "dynamic" equals "default" up to the training length, and longer texts are not read here.
KINDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "default": ("none", {}),
    "dynamic": ("none", dict.fromkeys(_LENGTHS, "")),
    "linear": ("linear", {"factor": "factor"}),
    "llama3": ("llama3", {**_LENGTHS, "low_freq_factor": "slow", "high_freq_factor": "fast"}),
    "yarn": ("yarn", {**_LENGTHS, "beta_slow": "slow", "beta_fast": "fast", "truncate": "rounded",
                      "attention_factor": "magnitude", "mscale": "", "mscale_all_dim": ""}),
}  # fmt: skip
ALWAYS = frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"})


def rotary(settings: Settings, *, base: float = 10_000.0, of_neox: bool = False) -> Known:
    """The numbers of rotary positions; refuses an unknown kind of scaling or number of it.

    `base` is the default; a base among the numbers of the positions wins. Of GPT-NeoX only a share of a head rotates,
    and version 4 has other keys; otherwise all of it does, whatever the keys say.
    """
    new, old = (record_of(settings, key, settings.raw(key)) for key in (NEW, SCALED))
    key, said = (SCALED, old) if old else (NEW, new)  # an empty one says nothing
    outside = settings.number("rotary_emb_base" if of_neox else "rope_theta", base).value
    numbers = of_record(settings, key, said, base=outside, whole=not of_neox)
    if of_neox:
        numbers["share"] = said.get("partial_rotary_factor", settings.number("rotary_pct", 0.25).value)
    else:
        settings.expect("partial_rotary_factor", 1.0, None)
    return Known(made(numbers, settings, key), settings.where(key))


def of_record(
    settings: Settings, key: str, said: Mapping[str, Any], *, base: float, whole: bool = True
) -> dict[str, Any]:
    """The numbers of one record, as `Rotary` takes them; `base` is the default. A `whole` head may have no share."""
    kind = said.get("rope_type", said.get("type", "default"))
    if not isinstance(kind, str) or kind not in KINDS:
        raise settings.refused(f"{key}.rope_type", kind, say("one of {names}", names=", ".join(KINDS)))
    scaling, names = KINDS[kind]
    for name in said:
        if name not in {*names, *ALWAYS} and said[name] is not None:
            raise settings.refused(
                f"{key}.{name}", said[name], say("no value, because {kind} does not use it", kind=kind)
            )
    if whole and said.get("partial_rotary_factor") not in (None, 1.0):
        raise settings.refused(f"{key}.partial_rotary_factor", said["partial_rotary_factor"], "1.0")
    values = {name: value for name, value in said.items() if value is not None}
    numbers: dict[str, Any] = {"base": values.get("rope_theta", base), "scaling": scaling}
    numbers |= {names[name]: value for name, value in values.items() if names.get(name)}
    if kind == "yarn" and "mscale" in values and "mscale_all_dim" in values and "magnitude" not in numbers:
        numbers["magnitude"] = _ratio(settings, key, values)
    return numbers


def made(numbers: Mapping[str, Any], settings: Settings, key: str) -> Rotary:
    """The record of them; a number that makes no sense is refused."""
    if numbers["scaling"] != "none":
        numbers = {"original_len": settings.whole("max_position_embeddings").value, **numbers}
    try:
        return Rotary(**numbers)
    except ValueError as error:
        sentence = getattr(error, "sentence", str(error))
        raise settings.refused(key, dict(numbers), sentence) from error


def _ratio(settings: Settings, key: str, values: Mapping[str, Any]) -> float:
    found = [values["mscale"], values["mscale_all_dim"], values.get("factor", 1.0)]
    if not all(isinstance(one, int | float) and one > 0 for one in found):
        raise settings.refused(f"{key}.mscale", found[0], say("a number above 0"))
    first, second, factor = found
    return float((0.1 * first * math.log(factor) + 1) / (0.1 * second * math.log(factor) + 1))


def record_of(settings: Settings, key: str, found: Any) -> Mapping[str, Any]:
    """The record that was found at a key; empty where there is none. Something else is refused."""
    if found is not None and not isinstance(found, Mapping):
        raise settings.refused(key, found, say("an object"))
    return found or {}


def grows(record: Mapping[str, Any]) -> bool:
    """Whether a config.json asks for other angles in texts beyond the length of the training ("dynamic")."""
    said = record.get(SCALED) or record.get(NEW)
    return isinstance(said, Mapping) and "dynamic" in (said.get("rope_type"), said.get("type"))


PREFIXES = ("model.", "")
FULL, SLIDING = "full_attention", "sliding_attention"

PLAIN: Mapping[str, Becomes] = {
    "embed_tokens.weight": "?input",
    **in_layers("layers", "decoder", {
        "self_attn.{q,k,v,o}_proj": "self_attn.{q,k,v,out}_proj",
        "mlp.{gate,up,down}_proj": "ffn.{gate,up,down}_proj",
    }),
    "layers.{n}.self_attn.rotary_emb.inv_freq": FORMULA,
    "rotary_emb.inv_freq": FORMULA,
}  # fmt: skip
NORMS_OF_HEADS = {"layers.{n}.self_attn.{q,k}_norm.weight": "decoder.layers.{n}.self_attn.{q,k}_norm.weight"}
NORMS = {
    "layers.{n}.{input,post_attention}_layernorm.weight": "decoder.layers.{n}.{self_attn,ffn}_residual.norm.weight",
    "norm.weight": "decoder.final_norm.weight",
}
HEAD: Mapping[str, Becomes] = {"lm_head.weight": "?output"}

_LLAMA_NAMES = {**PLAIN, **NORMS, **NORMS_OF_HEADS}
LLAMA = key_table(say("A decoder with LLaMA's tensor names."), _LLAMA_NAMES, prefixes=PREFIXES, head=HEAD)


def _decoder(settings: Settings) -> Fields:
    """What all of them have."""
    sizes = settings.sizes({"n_decoder_layers": "num_hidden_layers", **settings.USUAL})
    width, heads = sizes["d_model"], sizes["n_heads"]
    split = Known(width.value // heads.value, say("hidden_size / num_attention_heads"))
    settings.expect("use_bidirectional_attention", None, False)
    return {
        **always(n_encoder_layers=0, norm="pre", norm_kind="rms", final_norm=True),
        **sizes,
        "n_kv_heads": settings.whole("num_key_value_heads", heads, null=heads, least=1),
        "d_head": settings.whole("head_dim", split, null=split, least=1),
        **settings.vocabulary(),
        "norm_eps": settings.number("rms_norm_eps"),
        **always(gated=True, bias=False, positions="rotary", scale_embedding=False),
    }


def _plain(settings: Settings, base: float = 10_000.0) -> Fields:
    turning = rotary(settings, base=base)
    return {**_decoder(settings), "activation": settings.word("hidden_act"), "rotary": turning}


def _llama(settings: Settings, _: Present) -> Fields:
    """LLaMA, and what has its arithmetic (TinyLlama, SmolLM2): biases where the config says so."""
    settings.expect("rope_interleaved", False)
    return {**_plain(settings), **_attention_bias(settings), "ffn_bias": settings.flag("mlp_bias", False)}


def _attention_bias(settings: Settings) -> Fields:
    """One key for the biases of all four projections."""
    said = settings.flag("attention_bias", False)
    return {"attention_bias": said, "attention_output_bias": said}


def _mistral(settings: Settings, _: Present) -> Fields:
    """Mistral: every layer has a window, unless it is null."""
    said = _plain(settings)
    window = settings.whole("sliding_window", 4096, null=0, least=1)
    return {**said, "windows": _windows(settings, [SLIDING] * said["n_decoder_layers"].value, window.value)}


def _qwen2(settings: Settings, _: Present) -> Fields:
    """Qwen2: biases on queries, keys and values; a window from a layer on, if at all."""
    said = _plain(settings)
    settings.expect("use_mrope", False)
    return {**said, **always(attention_bias=True), "windows": _switched(settings, said)}


def _qwen3(settings: Settings, _: Present) -> Fields:
    """Qwen3: norms of queries and keys."""
    said = {**_plain(settings), **_attention_bias(settings)}
    return {**said, **always(qk_norm=True), "windows": _switched(settings, said)}


def _smollm3(settings: Settings, _: Present) -> Fields:
    """SmolLM3: every fourth layer takes no notice of positions."""
    said = {**_plain(settings, 2_000_000.0), **_attention_bias(settings)}
    said["ffn_bias"] = settings.flag("mlp_bias", False)
    n, every = said["n_decoder_layers"].value, settings.whole("no_rope_layer_interval", 4, least=1)
    default = [int((i + 1) % every.value != 0) for i in range(n)]
    placed = settings.raw("no_rope_layers", default)  # 1: a layer has positions
    placed = default if placed is None else placed
    if not isinstance(placed, list) or len(placed) != n or not all(one in (0, 1) for one in placed):
        raise settings.refused("no_rope_layers", placed, say_n("{n} number, 0 or 1", "{n} numbers, each 0 or 1", n))
    unplaced = tuple(i for i, one in enumerate(placed) if not one)
    why = settings.where("no_rope_layers", "no_rope_layer_interval")
    return {**said, "unplaced_layers": Known(unplaced, why), "windows": _switched(settings, said, within=unplaced)}


def _switched(settings: Settings, said: Fields, *, within: Collection[int] | None = None) -> Known:
    """Windows that a switch turns on, in the layers of a list or from one on."""
    n = said["n_decoder_layers"].value
    on = settings.flag("use_sliding_window", False)
    first = settings.whole("max_window_layers", 28, null=n).value
    said_or_4096 = within is None or settings.has("sliding_window")
    window = settings.whole("sliding_window", 4096, null=0, least=1).value if said_or_4096 else 0
    within = range(first, n) if within is None else within
    default = [SLIDING if on.value and window and i in within else FULL for i in range(n)]
    kinds = _layer_types(settings, n, default)
    if SLIDING in kinds and not (on.value and window):
        expected = say("no {kind}, because use_sliding_window is false or sliding_window is null", kind=SLIDING)
        raise settings.refused("layer_types", list(kinds), expected)
    return _windows(settings, kinds, window) if on.value else Known((), on.evidence)


def _layer_types(settings: Settings, n: int, default: Sequence[str]) -> Sequence[str]:
    """Which layers have a window."""
    found = settings.raw("layer_types")
    if found is None:
        return default
    if not isinstance(found, list) or len(found) != n or not all(kind in (FULL, SLIDING) for kind in found):
        expected = say("a list of {n} entries, each {full} or {sliding}", n=n, full=FULL, sliding=SLIDING)
        raise settings.refused("layer_types", found, expected)
    return found


def _windows(settings: Settings, kinds: Sequence[str], window: int) -> Known:
    """The window of each layer; empty if no layer has one.

    A window of 1 is refused: in its own program the cache then keeps all keys, and outputs differ from logits.
    """
    if window == 1 and SLIDING in kinds:
        raise settings.refused(
            "sliding_window", window, say("2 or more, because transformers itself treats 1 as no window")
        )
    found = tuple(window if kind == SLIDING else 0 for kind in kinds)
    return Known(found if any(found) else (), settings.where("sliding_window", "layer_types"))


FOUR_NORMS = {
    "layers.{n}.{input,pre_feedforward}_layernorm.weight": "decoder.layers.{n}.{self_attn,ffn}_residual.norm.weight",
    "layers.{n}.post_{attention,feedforward}_layernorm.weight": (
        "decoder.layers.{n}.{self_attn,ffn}_residual.output_norm.weight"
    ),
    "norm.weight": "decoder.final_norm.weight",
}
APPROXIMATE = "gelu_pytorch_tanh"
TANH = {**config_settings.ACTIVATIONS, "gelu": "gelu_tanh"}  # the first configs said gelu, and meant the approximation


def _gemma_table(name: Sentence, norms: Mapping[str, str]) -> KeyTable:
    moved = {theirs: (PLUS_ONE, ours) for theirs, ours in norms.items()}
    return key_table(name, {**PLAIN, **moved}, prefixes=PREFIXES, head=HEAD)


GEMMA = _gemma_table(say("A {family} model.", family="Gemma"), NORMS)
GEMMA_2 = _gemma_table(say("A Gemma 2 or 3 model."), FOUR_NORMS | NORMS_OF_HEADS)


def _gemma_alike(settings: Settings) -> Fields:
    return {**_decoder(settings), **_attention_bias(settings), **always(scale_embedding=True)}


def _gemma(settings: Settings, _: Present) -> Fields:
    """Gemma 1. Version 4 knew two keys for the non-linearity, of which version 5 reads the first."""
    activation = settings.word("hidden_act", APPROXIMATE, names=TANH)
    second = settings.raw("hidden_activation")
    if second is not None and TANH.get(str(second)) != activation.value:
        raise settings.refused("hidden_activation", second, say("the same value as hidden_act"))
    return {**_gemma_alike(settings), "activation": activation, "rotary": rotary(settings)}


def _gemma_2_and_3(settings: Settings) -> Fields:
    """What 2 and 3 share."""
    settings.raw("hidden_act")  # they read the other key
    scalar = settings.number("query_pre_attn_scalar")
    if scalar.value <= 0:
        raise settings.refused("query_pre_attn_scalar", scalar.value, say("a number above 0"))
    activation = settings.word("hidden_activation", APPROXIMATE)
    said = {**_gemma_alike(settings), "activation": activation, **always(norm="both")}
    return {**said, "score_scale": Known(scalar.value**-0.5, scalar.evidence)}


def _cap(settings: Settings, key: str, absent: float | None) -> Known:
    if settings.raw(key, absent) is None:
        return Known(None, settings.where(key))
    return settings.number(key, absent)


def _gemma_2(settings: Settings, _: Present) -> Fields:
    """Gemma 2: scores and logits have caps, and every other layer has a window."""
    said = _gemma_2_and_3(settings)
    n = said["n_decoder_layers"].value
    kinds = _layer_types(settings, n, [FULL if i % 2 else SLIDING for i in range(n)])
    return {
        **said,
        "rotary": rotary(settings),
        "score_cap": _cap(settings, "attn_logit_softcapping", 50.0),
        "logit_cap": _cap(settings, "final_logit_softcapping", 30.0),
        "windows": _windows(settings, kinds, settings.whole("sliding_window", 4096, least=1).value),
    }


def _gemma_3(settings: Settings, _: Present) -> Fields:
    """Gemma 3: norms of queries and keys, and layers with a window turn faster."""
    settings.raw("attn_logit_softcapping")  # its program has the key and no such cap
    said = _gemma_2_and_3(settings)
    n = said["n_decoder_layers"].value
    hidden = settings.whole("_sliding_window_pattern", 6, least=1)  # as version 5 saves it
    every = settings.whole("sliding_window_pattern", hidden, least=1).value
    kinds = _layer_types(settings, n, [SLIDING if (i + 1) % every else FULL for i in range(n)])
    return {
        **said,
        **always(qk_norm=True),
        "rotary": _by_kind(settings),
        "logit_cap": _cap(settings, "final_logit_softcapping", None),
        "windows": _windows(settings, kinds, settings.whole("sliding_window", 4096, least=1).value),
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
    why = settings.where(NEW) if nested else settings.where("rope_theta", "rope_local_base_freq")
    return Known(made({**numbers, "local_base": near["base"]}, settings, NEW), why)


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
GPT2 = key_table(say("A {family} model.", family="GPT-2"), _GPT2_NAMES, prefixes=("transformer.", ""), head=HEAD)


def _gpt2(settings: Settings, _: Present) -> Fields:
    """Norms before the sub-layers and one at the end, learned positions."""
    settings.expect("add_cross_attention", False)
    scaled = settings.flag("scale_attn_weights", True)
    settings.expect("scale_attn_by_inverse_layer_idx", False)
    settings.expect("is_decoder", False, True)
    names = {"n_decoder_layers": "n_layer", "d_model": "n_embd", "n_heads": "n_head", "max_len": "n_positions"}
    sizes = settings.sizes(names)
    inner = 4 * sizes["d_model"].value
    return {
        **always(n_encoder_layers=0, norm="pre", final_norm=True),
        **sizes,
        "d_ff": settings.whole("n_inner", inner, null=inner, least=1),
        **settings.vocabulary(),
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
_NEOX_HEAD: Mapping[str, Becomes] = {"{embed_out,lm_head}.weight": "?output"}
NEOX = key_table(say("A GPT-NeoX or Pythia model."), _NEOX_NAMES, prefixes=("gpt_neox.", ""), head=_NEOX_HEAD)


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
        "rotary": rotary(settings, of_neox=True),
    }


_JSON, _OR_MODEL = ("json",), ("json", "llama")
_IDS, _SMOL_IDS = {"bos_token_id": 1}, {"pad_token_id": 128004, "bos_token_id": 128000}
_GEMMA_IDS = {"pad_token_id": 0, "bos_token_id": 2}
_KNOWN = ("cache_implementation",)
FAMILIES = {
    "gpt2": Family("GPT-2", GPT2, _gpt2, ids={"bos_token_id": 50256}, vocabularies=("gpt2",)),
    "llama": Family("LLaMA", LLAMA, _llama, ids=_IDS, vocabularies=_OR_MODEL, tied=False),
    "mistral": Family("Mistral", LLAMA, _mistral, ids=_IDS, vocabularies=_OR_MODEL, tied=False),
    "qwen2": Family("Qwen2", LLAMA, _qwen2, vocabularies=_JSON, tied=False),
    "qwen3": Family("Qwen3", LLAMA, _qwen3, vocabularies=_JSON, tied=False),
    "smollm3": Family("SmolLM3", LLAMA, _smollm3, ids=_SMOL_IDS, vocabularies=_JSON),
    "gemma": Family("Gemma", GEMMA, _gemma, ids=_GEMMA_IDS, vocabularies=_OR_MODEL),
    "gemma2": Family("Gemma 2", GEMMA_2, _gemma_2, ids=_GEMMA_IDS, vocabularies=_OR_MODEL, known=_KNOWN),
    "gemma3_text": Family("Gemma 3", GEMMA_2, _gemma_3, ids=_GEMMA_IDS, vocabularies=_OR_MODEL, known=_KNOWN),
    "gpt_neox": Family("GPT-NeoX", NEOX, _neox, ids={"bos_token_id": 0}, vocabularies=_JSON, tied=False),
}
