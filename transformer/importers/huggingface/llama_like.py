"""LLaMA, Mistral, Qwen2, Qwen3 and SmolLM3: decoders alone with RMS norms, rotary positions and a gate.

Sources: Touvron et al., "LLaMA" (2023) and "Llama 2" (2023), Llama team (2024); Jiang et al., "Mistral 7B" (2023);
Qwen Team, "Qwen2" (2024) and "Qwen3" (2025); Hugging Face, "SmolLM3" (2025). The names are those of transformers
5.23.
"""

from collections.abc import Collection, Sequence

from transformer.importers.huggingface.config_settings import Fields, Known, Settings, fixed
from transformer.importers.huggingface.family import Family, Present
from transformer.importers.huggingface.renaming import FORMULA, INPUT, OUTPUT, renamed, unused
from transformer.importers.huggingface.rotary_config import rotary
from transformer.importers.keys import Rule, Table
from transformer.model.config import MAX_LAYERS
from words import say, say_n

PREFIXES = ("model.", "")
LAYER = "decoder.layers.{n}"
FULL, SLIDING = "full_attention", "sliding_attention"

PLAIN = {
    "embed_tokens.weight": INPUT,
    "layers.{n}.self_attn.q_proj.{p}": f"{LAYER}.self_attn.q_proj.{{p}}",
    "layers.{n}.self_attn.k_proj.{p}": f"{LAYER}.self_attn.k_proj.{{p}}",
    "layers.{n}.self_attn.v_proj.{p}": f"{LAYER}.self_attn.v_proj.{{p}}",
    "layers.{n}.self_attn.o_proj.{p}": f"{LAYER}.self_attn.out_proj.{{p}}",
    "layers.{n}.mlp.gate_proj.{p}": f"{LAYER}.ffn.gate_proj.{{p}}",
    "layers.{n}.mlp.up_proj.{p}": f"{LAYER}.ffn.up_proj.{{p}}",
    "layers.{n}.mlp.down_proj.{p}": f"{LAYER}.ffn.down_proj.{{p}}",
}
NORMS_OF_HEADS = {
    "layers.{n}.self_attn.q_norm.weight": f"{LAYER}.self_attn.q_norm.weight",
    "layers.{n}.self_attn.k_norm.weight": f"{LAYER}.self_attn.k_norm.weight",
}
NORMS = {
    "layers.{n}.input_layernorm.weight": f"{LAYER}.self_attn_residual.norm.weight",
    "layers.{n}.post_attention_layernorm.weight": f"{LAYER}.ffn_residual.norm.weight",
    "norm.weight": "decoder.final_norm.weight",
}
HEAD = Rule.of("lm_head.weight", OUTPUT)
FREQUENCIES = tuple(
    unused(FORMULA, "layers.{n}.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq", prefixes=PREFIXES)
)

LLAMA = Table(
    say("A decoder with LLaMA's names."),
    (*renamed(PLAIN | NORMS | NORMS_OF_HEADS, prefixes=PREFIXES), HEAD),
    FREQUENCIES,
)


def decoder(settings: Settings) -> Fields:
    """What all of them have, and Gemma too."""
    width, heads = settings.whole("hidden_size", least=1), settings.whole("num_attention_heads", least=1)
    size = settings.whole("vocab_size", least=1)
    split = Known(width.value // heads.value, say("hidden_size / num_attention_heads"))
    settings.expect("use_bidirectional_attention", None, False)
    return {
        "n_encoder_layers": fixed(0),
        "n_decoder_layers": settings.whole("num_hidden_layers", least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": heads,
        "n_kv_heads": settings.whole("num_key_value_heads", heads, null=heads, least=1),
        "d_head": settings.whole("head_dim", split, null=split, least=1),
        "d_ff": settings.whole("intermediate_size", least=1),
        "src_vocab_size": size,
        "tgt_vocab_size": size,
        "max_len": settings.whole("max_position_embeddings", least=1),
        "norm": fixed("pre"),
        "norm_kind": fixed("rms"),
        "final_norm": fixed(True),
        "norm_eps": settings.number("rms_norm_eps"),
        "gated": fixed(True),
        "bias": fixed(False),
        "positions": fixed("rotary"),
        "scale_embedding": fixed(False),
    }


def _plain(settings: Settings, base: float = 10_000.0) -> Fields:
    turning = rotary(settings, base=base)
    return {**decoder(settings), "activation": settings.word("hidden_act"), "rotary": turning}


def llama(settings: Settings, _: Present) -> Fields:
    """LLaMA, and what has its arithmetic (TinyLlama, SmolLM2): biases where the config says so."""
    settings.expect("rope_interleaved", False)
    return {**_plain(settings), **attention_bias(settings), "ffn_bias": settings.flag("mlp_bias", False)}


def attention_bias(settings: Settings) -> Fields:
    """One key for the biases of all four projections."""
    said = settings.flag("attention_bias", False)
    return {"attention_bias": said, "attention_output_bias": said}


def mistral(settings: Settings, _: Present) -> Fields:
    """Mistral: every layer has a window, unless it is null."""
    said = _plain(settings)
    window = settings.whole("sliding_window", 4096, null=0, least=1)
    return {**said, "windows": windows(settings, [SLIDING] * said["n_decoder_layers"].value, window.value)}


def qwen2(settings: Settings, _: Present) -> Fields:
    """Qwen2: biases on queries, keys and values; a window from a layer on, if at all."""
    said = _plain(settings)
    settings.expect("use_mrope", False)
    return {**said, "attention_bias": fixed(True), "windows": _switched(settings, said)}


def qwen3(settings: Settings, _: Present) -> Fields:
    """Qwen3: norms of queries and keys."""
    said = {**_plain(settings), **attention_bias(settings)}
    return {**said, "qk_norm": fixed(True), "windows": _switched(settings, said)}


def smollm3(settings: Settings, _: Present) -> Fields:
    """SmolLM3: every fourth layer takes no notice of positions."""
    said = {**_plain(settings, 2_000_000.0), **attention_bias(settings)}
    said["ffn_bias"] = settings.flag("mlp_bias", False)
    n, every = said["n_decoder_layers"].value, settings.whole("no_rope_layer_interval", 4, least=1)
    default = [int((i + 1) % every.value != 0) for i in range(n)]
    placed = settings.raw("no_rope_layers", default)  # 1: a layer has positions
    placed = default if placed is None else placed
    if not isinstance(placed, list) or len(placed) != n or not all(one in (0, 1) for one in placed):
        raise settings.refused("no_rope_layers", placed, say_n("{n} number, 0 or 1", "{n} numbers, each 0 or 1", n))
    unplaced = tuple(i for i, one in enumerate(placed) if not one)
    why = say("no_rope_layers and no_rope_layer_interval in config.json")
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
    kinds = layer_types(settings, n, default)
    if SLIDING in kinds and not (on.value and window):
        expected = say("no {kind}, as use_sliding_window is false or sliding_window is null", kind=SLIDING)
        raise settings.refused("layer_types", list(kinds), expected)
    return windows(settings, kinds, window) if on.value else Known((), on.evidence)


def layer_types(settings: Settings, n: int, default: Sequence[str]) -> Sequence[str]:
    """Which layers have a window."""
    found = settings.raw("layer_types")
    if found is None:
        return default
    if not isinstance(found, list) or len(found) != n or not all(kind in (FULL, SLIDING) for kind in found):
        expected = say("{n} times {full} or {sliding}", n=n, full=FULL, sliding=SLIDING)
        raise settings.refused("layer_types", found, expected)
    return found


def windows(settings: Settings, kinds: Sequence[str], window: int) -> Known:
    """The window of each layer; none at all if no layer has one.

    One of 1 is refused: in its own program the cache then keeps all keys, and outputs differ from logits.
    """
    if window == 1 and SLIDING in kinds:
        raise settings.refused(
            "sliding_window", window, say("2 or more, as transformers itself takes 1 for no window")
        )
    found = tuple(window if kind == SLIDING else 0 for kind in kinds)
    return Known(found if any(found) else (), say("sliding_window and the kinds of layers in config.json"))


_JSON = ("json",)
_OR_MODEL = ("json", "llama")
_LLAMA_IDS = {"bos_token_id": 1}
FAMILIES = {
    "llama": Family("LLaMA", lambda _: LLAMA, llama, ids=_LLAMA_IDS, vocabularies=_OR_MODEL, tied=False),
    "mistral": Family("Mistral", lambda _: LLAMA, mistral, ids=_LLAMA_IDS, vocabularies=_OR_MODEL, tied=False),
    "qwen2": Family("Qwen2", lambda _: LLAMA, qwen2, vocabularies=_JSON, tied=False),
    "qwen3": Family("Qwen3", lambda _: LLAMA, qwen3, vocabularies=_JSON, tied=False),
    "smollm3": Family(
        "SmolLM3",
        lambda _: LLAMA,
        smollm3,
        ids={"pad_token_id": 128004, "bos_token_id": 128000},
        vocabularies=_JSON,
        tied=True,
    ),
}
