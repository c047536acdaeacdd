"""fairseq importer of translation Transformers: tensor names, options, and the token lists `dict.en.txt`.

A file has `model`, and the options as `args` (a Namespace, until version 0.9) or as `cfg` with a section for the model
and one for the task. Text ends with `</s>`, and the decoder's input begins with it; positions begin after the padding
id.

Refused by name: architectures other than the plain Transformer (convolutions, LSTM, language models, multilingual,
non-autoregressive, BART), tasks that put a language before a text, adaptive softmax and inputs, embeddings narrower
than the stream, cross+self attention, layers that are taken away or shared, adapters, NormFormer's scales, characters
as input, and a decoder without its final norm.

Source: Ott et al., "fairseq: A Fast, Extensible Toolkit for Sequence Modeling" (2019), and its code up to 0.12.
"""

from collections.abc import Mapping
from typing import Any

from glassformer.extensions.importers.library.config_settings import ACTIVATIONS, Fields, Known, Present, always, fixed
from glassformer.extensions.importers.library.keys import SPLIT_ROWS, cut_rows, spelled
from glassformer.extensions.importers.library.renaming import FAIRSEQ, FORMULA, Becomes
from glassformer.extensions.toolkits.toolkit import Toolkit, ToolkitFiles, ToolkitOptions, ToolkitPieces, no_lists, part
from glassformer.extensions.weight_files.weights import Weights
from transformer.errors import CheckpointError, shown
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # before the pieces of every list
PAD = 1
OVERWRITE = " #fairseq:overwrite"
ARCHITECTURES = (
    "transformer", "transformer_tiny", "transformer_iwslt_de_en", "transformer_wmt_en_de",
    "transformer_vaswani_wmt_en_de_big", "transformer_vaswani_wmt_en_fr_big", "transformer_wmt_en_de_big",
    "transformer_wmt_en_de_big_t2t", "transformer_align", "transformer_wmt_en_de_big_align",
)  # fmt: skip
FUNCTIONS = {**{name: ACTIVATIONS[name] for name in ("relu", "gelu", "gelu_fast", "gelu_accurate")}, "linear": "none"}
MODELS = ("sentencepiece.bpe.model", "spm.model", "sentencepiece.model")
REFUSED = (
    "adaptive_softmax_cutoff", "adaptive_input", "cross_self_attention", "no_cross_attention",
    "encoder_layers_to_keep", "decoder_layers_to_keep", "char_inputs", "base_layers", "use_factorized_embedding",
    "scale_fc", "scale_attn", "scale_heads", "scale_resids", "merge_src_tgt_embed", "use_alibi", "prepend_bos",
    "encoder_recurrent_stacking", "decoder_recurrent_stacking", "encoder_add_adapters", "decoder_add_adapters",
    "encoder_xformers_att_config", "decoder_xformers_att_config", "encoder_factorized_embed_dim",
    "decoder_factorized_embed_dim", "encoder_langtok", "decoder_langtok",
)  # fmt: skip
# Of training, or of tables that are in the file.
_NAMES = (
    "{stack}_{embed_path,layerdrop,adapter_reduction_factor,adapter_activation_fn,adapter_lang_ids,finetune_adapter}"
)
WITHOUT_EFFECT = [name for name, _ in spelled(_NAMES)]
IDS = {"pad_id": "<pad>", "unk_id": "<unk>", "bos_id": "<s>", "eos_id": "</s>", "decoder_start_id": "</s>"}


NAMES: Mapping[str, Becomes] = {
    **FAIRSEQ,
    "encoder.layers.{n}.layer_norms.{0,1}.{p}": "encoder.layers.{n}.{self_attn,ffn}_residual.norm.{p}",
    "decoder.layers.{n}.layer_norms.{0,1,2}.{p}": "decoder.layers.{n}.{self_attn,cross_attn,ffn}_residual.norm.{p}",
    "{stack}.layers.{n}.{self,encoder}_attn.in_proj_{p}": (
        SPLIT_ROWS, "{stack}.layers.{n}.{self,cross}_attn.{q,k,v}_proj.{p}",
    ),
    "decoder.{output_projection.weight,embed_out}": "?output",
    # Since version 0.12.
    "encoder.layers.{n}.{in_proj,out_proj,fc1,fc2}_{weight,bias}": say(
        "fairseq recomputes this tensor from the layer's other tensors when it loads the model"
    ),
    "{stack}.version": say("it is only the version number of the file format"),
    "{stack}.embed_positions.{_float_tensor,weights}": FORMULA,
}  # fmt: skip
POSITIONS = {"{stack}.embed_positions.weight": (cut_rows(PAD + 1), "{stack}.embedding.positions.table")}


def _recognises(weights: Weights) -> bool:
    model = part(weights.evidence.get("cfg"), "model")
    names = (model.get("_name") or model.get("arch"), part(weights.evidence, "args").get("arch"))
    named = any(isinstance(name, str) for name in names)
    return named and any(name.startswith(("encoder.", "decoder.")) for name in weights.tensors)


def _options(place: ToolkitFiles) -> dict[str, Any]:
    """The options in one flat record; those of a stack may be in a section of their own."""
    said = place.weights.evidence
    task, model = (part(said.get("cfg"), name) for name in ("task", "model"))
    record = part(said, "args") or task | model
    for stack in ("encoder", "decoder"):
        record |= {f"{stack}_{key}": value for key, value in part(record, stack).items()}
        record.pop(stack, None)
    record.setdefault("arch", model.get("_name"))
    record["task"] = task.get("_name", record.get("task", "translation"))
    return record


def _fields(options: ToolkitOptions, _: Present, __: ToolkitPieces | None) -> Fields:
    options.expect("arch", *ARCHITECTURES)
    options.expect("task", "translation")
    options.refuse(*REFUSED)
    width = options.same("encoder_embed_dim", "decoder_embed_dim", 512)
    for name in ("decoder_input_dim", "decoder_output_dim"):
        options.expect(name, width.value)
    pre = options.same("encoder_normalize_before", "decoder_normalize_before", False, read=options.flag)
    options.expect("no_decoder_final_norm", False, *([] if pre.value else [True]))
    learned = options.same("encoder_learned_pos", "decoder_learned_pos", False, read=options.flag)
    none = options.flag("no_token_positional_embeddings", False)
    unscaled = options.flag("no_scale_embedding", False)
    inner = options.whole("encoder_ffn_embed_dim", 2048, least=1)
    made = {
        "n_encoder_layers": options.whole("encoder_layers", 6, least=1, most=MAX_LAYERS),
        "n_decoder_layers": options.whole("decoder_layers", 6, least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": options.whole("encoder_attention_heads", 8, least=1),
        "n_decoder_heads": options.whole("decoder_attention_heads", 8, least=1),
        "d_ff": inner,
        "d_decoder_ff": options.whole("decoder_ffn_embed_dim", inner, least=1),
        "activation": options.word("activation_fn", "relu", names=FUNCTIONS),
        "norm": Known("pre" if pre.value else "post", pre.evidence),
        "final_norm": pre,
        **always(norm_eps=1e-5, bias=True, append_source_eos=True, prepend_source_bos=False),
        "embedding_norm": options.flag("layernorm_embedding", False),
        "scale_embedding": Known(not unscaled.value, unscaled.evidence),
        "positions": Known("learned" if learned.value else "sinusoidal", learned.evidence),
        "sinusoid_layout": fixed("interleaved" if none.value or learned.value else "fairseq"),
        "max_len": _length(options),
        **{name: fixed(SPECIAL.index(piece)) for name, piece in IDS.items()},
    }
    if none.value:
        made["positions"] = Known("none", none.evidence)
    options.check_asked(("encoder_", "decoder_"), WITHOUT_EFFECT)
    return made


def _length(options: ToolkitOptions) -> Known:
    """The shorter of the two lengths: models here have one."""
    both = [options.whole(f"max_{side}_positions", 1024, null=1024, least=1) for side in ("source", "target")]
    return min(both, key=lambda one: one.value)


def _pieces(options: ToolkitOptions, place: ToolkitFiles) -> ToolkitPieces | Sentence:
    languages = [options.raw(f"{side}_lang") for side in ("source", "target")]
    names = [f"dict.{one}.txt" for one in languages if isinstance(one, str) and one.isprintable() and "/" not in one]
    if not all(map(place.files.has, names)) or len(names) < 2:
        names = ["dict.txt"] * 2
    if not place.files.has(names[0]):
        return no_lists(f"dict.{shown(one)}.txt".replace("'", "") for one in languages)
    read = {name: _list(place, name) for name in dict.fromkeys(names)}
    model = next((one for one in MODELS if place.files.has(one)), None)
    two = ("source.spm", "target.spm")
    models = (model, model) if model else two if all(map(place.files.has, two)) else None
    return ToolkitPieces(read[names[0]], read[names[1]], models)


def _list(place: ToolkitFiles, name: str) -> tuple[str, ...]:
    """The pieces of a list: each line has a piece and its count."""
    found = list(SPECIAL)
    for number, line in enumerate(place.lines(name), start=1):
        piece, _, count = line.removesuffix(OVERWRITE).rpartition(" ")
        if not piece or not count.lstrip("-").isdecimal():
            raise CheckpointError(
                "{label}: line {line:,} is {found}; expected a token and its count, as in `the 512`.",
                label=place.files.label(name),
                line=number,
                found=shown(line),
            )
        found.append(piece)
    return tuple(found)


TOOLKIT = Toolkit(
    "fairseq",
    _recognises,
    _options,
    _pieces,
    lambda options, _: {**NAMES, **POSITIONS} if options.flag("encoder_learned_pos", False).value else NAMES,
    _fields,
    ("share_all_embeddings", "share_decoder_input_output_embed"),
)
