"""What the fields that an import asks for are called, and their values; they are named as config.json names them."""

import json
from collections.abc import Mapping
from typing import Any, Final

from glassformer.extensions.importers.library.kept_answers import as_told
from glassformer.extensions.importers.library.report import Choice, Field
from glassformer.extensions.tokenizers.languages import language_name
from transformer.i18n import say

MOST_OUTPUT: Final = 24  # characters of an output that stand beside a choice
LANGUAGES: Final = ("source_language", "target_language")
FIELDS: Final[Mapping[str, str]] = {
    "n_heads": say("Heads in each attention sub-layer"),
    "norm": say("Placement of the norms"),
    "norm_kind": say("Kind of norm"),
    "norm_eps": say("Epsilon of the norms"),
    "scale_embedding": say("Embeddings times √d_model"),
    "activation": say("Activation function"),
    "positions": say("Positions"),
    "sinusoid_layout": say("Order of the sines and cosines"),
    "score_scale": say("Scale of the scores"),
    "max_len": say("Maximum tokens per side"),
    "src_table": say("Tensor of the source embeddings"),
    "tgt_table": say("Tensor of the target embeddings"),
    "output_table": say("Tensor of the output layer"),
    "output_bias": say("Bias of the output layer"),
    "prefix": say("Prefix of the model's tensors"),
    "encoder_layers": say("Where the encoder's layers are"),
    "decoder_layers": say("Where the decoder's layers are"),
    "encoder_norm": say("Norm after the encoder's last layer"),
    "decoder_norm": say("Norm after the decoder's last layer"),
    "self_attn": say("Module of self-attention"),
    "cross_attn": say("Module of cross-attention"),
    "q_proj": say("Matrix of the queries"),
    "k_proj": say("Matrix of the keys"),
    "v_proj": say("Matrix of the values"),
    "out_proj": say("Matrix that combines the heads"),
    "up_proj": say("First matrix of the feed-forward network"),
    "down_proj": say("Second matrix of the feed-forward network"),
    "norms": say("Norms of a layer, in the order of its sub-layers"),
    "ignored": say("Tensors that the model does not need"),
    "prepend_source_bos": say("Texts begin with the start mark"),
    "append_source_eos": say("Sources end with the end mark"),
    "tie_output": say("The output layer shares the embeddings"),
    "shared_vocab": say("One vocabulary for both sides"),
    "pad_id": say("Id of the padding piece"),
    "unk_id": say("Id of the unknown piece"),
    "bos_id": say("Id of the start mark"),
    "eos_id": say("Id of the end mark"),
    "decoder_start_id": say("Id that the decoder starts with"),
    "source_language": say("Language of the source"),
    "target_language": say("Language of the output"),
}
_VALUES: Final[Mapping[tuple[str, Any], str]] = {
    ("norm", "pre"): say("pre: before each sub-layer"),
    ("norm", "post"): say("post: after each sub-layer"),
    ("norm_kind", "layer"): say("layer: divides by √(variance + epsilon)"),
    ("norm_kind", "deviation"): say("deviation: divides by (standard deviation + epsilon)"),
}


def label(field: Field) -> str:
    """What a question is called."""
    return say("{what} ({name})", what=FIELDS[field.name], name=field.name) if field.name in FIELDS else field.name


def choice(field: Field, one: Choice) -> str:
    """What a possible answer is called, with its score if it has one."""
    said = value(field.name, one.value)
    if one.score is None:
        return said
    if one.output is None:
        return say("{answer} · loss {score:.3f}", answer=said, score=one.score)
    output = one.output if len(one.output) <= MOST_OUTPUT else f"{one.output[:MOST_OUTPUT]}…"
    return say("{answer} · loss {score:.3f} · output “{output}”", answer=said, score=one.score, output=output)


def value(name: str, found: Any) -> str:
    """What a value of a field is called."""
    if name in LANGUAGES and isinstance(found, str):
        return say("{language} ({code})", language=language_name(found), code=found)
    if (name, found) in _VALUES:
        return _VALUES[name, found]
    if name == "score_scale" and found == 1:
        return say("none: q·k is not scaled (factor 1)")
    if name == "score_scale":
        return as_told(name, found)
    if isinstance(found, bool):
        return say("yes") if found else say("no")
    if found is None:
        return say("none")
    return found if isinstance(found, str) else json.dumps(found)
