"""OpenNMT-py importer: tensor names, options and vocabularies of a `model_step_1000.pt`.

Versions 1 and 2 save vocabularies as objects of torchtext, version 3 as lists; version 3 may store the tensors in a
separate .safetensors file, which is not opened. A source ends with no special piece; the decoder begins with `<s>`.

Refused by name: recurrent and convolutional encoders and decoders, average attention, relative positions (its own
kinds of them), language models, copy attention, features of words, mixtures of experts, attention that shares keys
and values, parallel residuals, RMS norms, adapters (LoRA) and quantised layers.

Source: Klein et al., "OpenNMT: Open-Source Toolkit for Neural Machine Translation" (2017), and its code up to 3.5.
"""

from collections.abc import Mapping
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Known, Present, always, inferred
from glassformer.extensions.importers.library.keys import FLATTENED
from glassformer.extensions.importers.library.renaming import Becomes, in_layers
from glassformer.extensions.toolkits.toolkit import Toolkit, ToolkitFiles, ToolkitOptions, ToolkitPieces, part
from transformer.errors import ClauseError
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

LENGTH = 5000  # rows of its table of sinusoids
PAD, UNKNOWN, START, END = "<blank>", "<unk>", "<s>", "</s>"
FUNCTIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "gated-gelu": "gelu"}
GATED = ("silu", "gated-gelu")
LAYOUTS = {"SinusoidalInterleaved": "interleaved", "SinusoidalConcat": "tensor2tensor"}
EXPECTED = {
    "model_type": "text", "model_task": "seq2seq", "encoder_type": "transformer", "decoder_type": "transformer",
    "layer_norm": "standard", "position_encoding": True,
}  # fmt: skip
REFUSED = (
    "max_relative_positions", "relative_positions_buckets", "copy_attn", "num_experts", "num_kv", "parallel_residual",
    "shared_layer_norm", "sliding_window", "lora_layers", "lora_embedding", "quant_layers", "n_src_feats",
)  # fmt: skip


NAMES: Mapping[str, Becomes] = {
    "{encoder,decoder}.embeddings.make_embedding.emb_luts.0.weight": "?{source,target}",
    "{generator.0,generator}.weight": "?output",
    "{generator.0,generator}.bias": "?bias",
    "{stack}.layer_norm.{p}": "{stack}.final_norm.{p}",
    "{stack}.embeddings.make_embedding.pe.pe": (FLATTENED, "{stack}.embedding.positions.table"),
}
IN_LAYER = {
    "{self,context}_attn.{linear_query,linear_keys,linear_values,final_linear}": "{self,cross}_attn.{q,k,v,out}_proj",
    "{layer_norm,layer_norm_1,layer_norm_2}": "{self_attn,self_attn,cross_attn}_residual.norm",
    "feed_forward.{layer_norm,w_2}": "{ffn_residual.norm,ffn.down_proj}",
}


def _names(options: ToolkitOptions, _: ToolkitFiles) -> Mapping[str, Becomes]:
    """The first map of a gated feed-forward network is the gate."""
    gated = options.raw("pos_ffn_activation_fn") in GATED
    maps = {"feed_forward.{w_1,w_3}": "ffn.{gate,up}_proj"} if gated else {"feed_forward.w_1": "ffn.up_proj"}
    encoder = in_layers("encoder.transformer", "encoder", IN_LAYER | maps)
    return {**encoder, **in_layers("decoder.transformer_layers", "decoder", IN_LAYER | maps), **NAMES}


def _fields(options: ToolkitOptions, present: Present, pieces: ToolkitPieces | None) -> Fields:
    for key, expected in EXPECTED.items():
        options.expect(key, expected)
    options.expect("self_attn_type", "scaled-dot", "scaled-dot-flash")
    options.refuse(*REFUSED)
    width = _alike(options, "hidden_size", "enc_hid_size", "dec_hid_size", "enc_rnn_size", "dec_rnn_size", "rnn_size",
                   "src_word_vec_size", "tgt_word_vec_size", "word_vec_size")  # fmt: skip

    def seen(tensor: str) -> Known:
        return inferred(f"encoder.layers.0.{tensor}" in present, say("the tensors in the file"))

    return {
        "n_encoder_layers": _number(options, "enc_layers", "layers"),
        "n_decoder_layers": _number(options, "dec_layers", "layers"),
        "d_model": width,
        "n_heads": options.whole("heads", 8, least=1),
        "d_ff": options.whole("transformer_ff", 2048, least=1),
        "activation": options.word("pos_ffn_activation_fn", "relu", names=FUNCTIONS),
        "gated": seen("ffn.gate_proj.weight"),
        **always(norm="pre", final_norm=True, bias=True, scale_embedding=True, positions="sinusoidal"),
        "norm_eps": options.number("norm_eps", 1e-6),
        "attention_bias": seen("self_attn.q_proj.bias"),
        "attention_output_bias": seen("self_attn.out_proj.bias"),
        "ffn_bias": seen("ffn.down_proj.bias"),
        "sinusoid_layout": options.word("position_encoding_type", "SinusoidalInterleaved", names=LAYOUTS),
        **always(max_len=LENGTH, append_source_eos=False, prepend_source_bos=False),
        **_ids(options, pieces),
    }


def _number(options: ToolkitOptions, key: str, other: str) -> Known:
    """The number of layers of a stack; -1 for the option of both stacks."""
    if options.raw(key, -1) == -1:
        return options.whole(other, least=1, most=MAX_LAYERS)
    return options.whole(key, least=1, most=MAX_LAYERS)


def _alike(options: ToolkitOptions, *keys: str) -> Known:
    """The width on which all set options agree; -1 is unset."""
    said = {key: options.raw(key) for key in keys if options.raw(key) not in (None, -1)}
    first = next(iter(said), keys[0])
    for key, value in said.items():
        if value != said[first]:
            raise options.refused(key, value, say("{value}, as in {other}", value=str(said[first]), other=first))
    return options.whole(first, least=1)


def _ids(options: ToolkitOptions, pieces: ToolkitPieces | None) -> Fields:
    """The ids of special pieces; in versions 1 and 2 the source has no start and no end."""
    if pieces is None:
        raise ClauseError("has no vocabulary, so the ids of the special tokens are unknown; save the whole checkpoint")
    target = ToolkitPieces(pieces.target, pieces.target)
    start = options.raw("decoder_start_token", START)
    return always(
        pad_id=pieces.id_of(PAD),
        unk_id=pieces.id_of(UNKNOWN),
        bos_id=target.id_of(START),
        eos_id=target.id_of(END),
        decoder_start_id=target.id_of(start if isinstance(start, str) else START),
    )


def _pieces(options: ToolkitOptions, place: ToolkitFiles) -> ToolkitPieces | Sentence:
    vocabulary = place.weights.evidence.get("vocab")
    sides = {side: _list(vocabulary, side) for side in ("src", "tgt")}
    if not (sides["src"] and sides["tgt"]):
        return say("The file contains no vocabulary that this program can read.")
    models = [options.raw(f"{side}_subword_model") for side in ("src", "tgt")]
    kind = [options.raw(f"{side}_subword_type") for side in ("src", "tgt")]
    names = [str(one).rsplit("/", 1)[-1] for one in models]
    there = kind == ["sentencepiece"] * 2 and all(map(place.files.has, names))
    return ToolkitPieces(sides["src"], sides["tgt"], (names[0], names[1]) if there else None)


def _list(vocabulary: Any, side: str) -> tuple[str, ...]:
    """The pieces of one side: a list, or torchtext's fields; of several features the first."""
    found = vocabulary.get(side) if isinstance(vocabulary, Mapping) else None
    if isinstance(vocabulary, list):  # version 1.0: pairs of a side and its vocabulary
        pairs = [pair for pair in vocabulary if isinstance(pair, list) and len(pair) == 2]
        found = next((own for name, own in pairs if name == side), None)
    for _ in range(6):
        if isinstance(found, Mapping):
            found = next((found[key] for key in ("fields", "vocab", "itos") if key in found), None)
        elif isinstance(found, list) and found and isinstance(found[0], list) and len(found[0]) == 2:
            found = found[0][1]
    return tuple(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else ()


TOOLKIT = Toolkit(
    "OpenNMT-py",
    lambda weights: "decoder_type" in part(weights.evidence, "opt"),
    lambda place: place.weights.evidence["opt"],
    _pieces,
    _names,
    _fields,
    ("share_decoder_embeddings",),
)
