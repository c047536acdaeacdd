"""Settings saved with the weights: which keys answer which questions, and which contradict the tensors.

    torch.save({"state_dict": ..., "hyper_parameters": {"nhead": 4, "norm_first": True}}, "last.ckpt")

`Weights.settings` has them by dotted keys: dictionaries in the file, `args` of argparse, and a `hparams.yaml` or
`config.json` next to it. Only names with one meaning in published code are read, whatever their case and underscores.
Settings that give the model another size than its tensors have are another model's: none of their dictionary is used,
and a note says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from glassformer.extensions.importers.library.config_settings import ACTIVATIONS
from glassformer.extensions.importers.library.report import Field
from transformer.errors import shown
from transformer.i18n import Sentence, joined, say
from transformer.model.config import MAX_LENGTH

_FEW = 12  # entries of a dictionary that may all be whole numbers, each another one, without being a vocabulary
Parse = Callable[[Any], Any]
"""The value of a field for that of a key; a ValueError where it means nothing here."""


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _whole(value: Any) -> int:
    if type(value) is not int and not (isinstance(value, str) and value.isdecimal()):
        raise ValueError
    return int(value)


def _length(value: Any) -> int:
    if (length := _whole(value)) <= 1:
        raise ValueError
    return min(length, MAX_LENGTH)


def _epsilon(value: Any) -> float:
    found = float(value) if isinstance(value, float | str) else 0.0  # YAML takes 1e-5 for a text
    if not 0 < found < 1:
        raise ValueError
    return found


def _word(**meanings: Any) -> Parse:
    """A parser of words, whatever their case and marks."""

    def parse(value: Any) -> Any:
        word = _plain(str(value)) if isinstance(value, str | bool) else ""
        if word not in meanings:
            raise ValueError
        return meanings[word]

    return parse


_FLAG, _FIRST = _word(true=True, false=False), _word(true="pre", false="post")  # metadata are texts
_ACTIVATION = _word(**{_plain(name): ours for name, ours in ACTIVATIONS.items()})
_PLACE = _word(pre="pre", prenorm="pre", preln="pre", post="post", postnorm="post", postln="post")
_KIND = _word(rms="rms", rmsnorm="rms", layer="layer", layernorm="layer")
_POSITIONS = _word(sinusoidal="sinusoidal", sinusoid="sinusoidal", sine="sinusoidal", sin="sinusoidal", none="none")


# A field, what its values mean, and keys that say it.
ANSWERS: tuple[tuple[str, Parse, str], ...] = (
    ("n_heads", _whole, "n_heads|n_head|num_heads|num_head|heads|head_num|n_attn_heads|num_attention_heads"),
    ("n_heads", _whole, "attention_heads|attn_heads"),
    ("norm", _FIRST, "norm_first|pre_norm|pre_ln|normalize_before|is_pre_norm|use_pre_norm"),
    ("norm", _PLACE, "norm_place|norm_position|norm_style|ln_position"),
    ("norm_kind", _KIND, "norm_kind|norm_type|normalization"),
    ("norm_eps", _epsilon, "norm_eps|layer_norm_eps|layer_norm_epsilon|ln_eps"),
    ("activation", _ACTIVATION, "activation|activation_function|activation_fn|hidden_act|act_fn"),
    ("scale_embedding", _FLAG, "scale_embedding|scale_embeddings|embedding_scale|scale_embed"),
    ("positions", _POSITIONS, "positions|positional_encoding|pos_encoding|position_encoding"),
    ("max_len", _length, "max_len|max_length|max_seq_len|max_seq_length|max_sequence_length|block_size"),
    ("max_len", _length, "context_length|n_positions|max_position_embeddings"),
    ("tie_output", _FLAG, "tie_output|tie_word_embeddings|share_decoder_input_output_embed"),
    ("pad_id", _whole, "pad_id|pad_idx|padding_idx|pad_token_id|src_pad_idx|trg_pad_idx|tgt_pad_idx|pad_index"),
    ("bos_id", _whole, "bos_id|bos_idx|bos_token_id|sos_id|sos_idx|sos_token_id|bos_index|sos_index"),
    ("bos_id", _whole, "trg_sos_idx|tgt_sos_idx|start_token_id"),
    ("eos_id", _whole, "eos_id|eos_idx|eos_token_id|eos_index|trg_eos_idx|tgt_eos_idx|end_token_id"),
    ("unk_id", _whole, "unk_id|unk_idx|unk_token_id|unk_index"),
)
# Keys that only say whether the settings are those of this model, by the fields of which one must have their value.
CHECKS: Mapping[tuple[str, ...], str] = {
    ("d_model",): "d_model|dim_model|model_dim|n_embd|embed_dim|emb_dim",
    ("d_ff",): "d_ff|dim_feedforward|ffn_dim|d_inner|dff",
    ("n_encoder_layers",): "n_encoder_layers|num_encoder_layers|encoder_layers|enc_layers|n_enc_layers",
    ("n_decoder_layers",): "n_decoder_layers|num_decoder_layers|decoder_layers|dec_layers|n_dec_layers",
    ("n_encoder_layers", "n_decoder_layers"): "n_layer|n_layers|num_layers|num_hidden_layers",
}
# The same by key.
_MEANT = {_plain(key): (name, parse) for name, parse, keys in ANSWERS for key in keys.split("|")}
_SIZES = {_plain(key): names for names, keys in CHECKS.items() for key in keys.split("|")}


def with_settings(
    fields: Sequence[Field], settings: Mapping[str, Any], rows: int
) -> tuple[list[Field], tuple[Sentence, ...]]:
    """The fields with what was saved beside the weights, and notes about what is not used; `rows` limits ids."""
    settings = _of_models(settings)
    others = _of_others({one.name: one.value for one in fields}, settings)
    notes = [
        say(
            "The settings next to {key} are not used: it is {found}, but by the tensors it is {expected}, so they are "
            "another model's.",
            key=shown(key),
            found=settings[key],
            expected=" / ".join(map(str, expected)),
        )
        for key, expected in others.values()
    ]
    own = {key: found for key, found in settings.items() if not any(_inside(key, one) for one in others)}
    return [_settled(one, own, rows) for one in fields], tuple(notes)


def _of_models(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings whose names are known; of no dictionary that gives an id to many words, which may be “heads”."""
    inside: dict[str, list[str]] = {}
    for key in settings:
        inside.setdefault(key.rpartition(".")[0], []).append(key)
    found = dict[str, Any]()
    for keys in inside.values():
        known = [key for key in keys if _name(key) in _MEANT or _name(key) in _SIZES]
        ids = {settings[key] for key in keys if type(settings[key]) is int}
        if len(keys) <= _FEW or len(ids) < len(keys) or 2 * len(known) >= len(keys):
            found |= {key: settings[key] for key in known}
    return found


def _of_others(known: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """The dictionaries that give the model another size -> a key that does, and the sizes by the tensors."""
    others: dict[str, tuple[str, list[int]]] = {}
    for key, found in settings.items():
        there = list(dict.fromkeys(known[name] for name in _SIZES.get(_name(key), ()) if known.get(name)))
        if type(found) is int and there and found not in there:
            others.setdefault(key.rpartition(".")[0], (key, there))
    return others


def _settled(field: Field, settings: Mapping[str, Any], rows: int) -> Field:
    """The field as the keys say; where they cannot be right, or differ, it stays what it is and says so."""
    is_open = field.how == "asked" or (field.is_assumed and field.name == "n_heads")
    if not (is_open or field.name == "norm_eps"):
        return field
    values, problems = dict[str, Any](), list[Sentence]()
    for key, found in settings.items():
        name, parse = _MEANT.get(_name(key), ("", _whole))
        if name != field.name or found is None:
            continue
        try:
            values[key] = _possible(field, parse(found), rows)
        except ValueError:
            problem = say(
                "{key}, saved with the weights, is {found}, which cannot be this model's.",
                key=shown(key),
                found=shown(found),
            )
            problems.append(problem)
    if len(set(values.values())) > 1:
        pairs = ", ".join(f"{key} = {settings[key]}" for key in values)
        problems = [say("The values saved with the weights differ: {pairs}.", pairs=pairs)]
    elif values:
        key, value = next(iter(values.items()))
        why = say("This value is saved with the weights as {key}.", key=shown(key))
        return Field(field.name, "read", value, why, field.choices)
    return replace(field, evidence=joined(" ", [*problems[:1], field.evidence])) if is_open else field


def _possible(field: Field, value: Any, rows: int) -> Any:
    """The value, if the field can have it."""
    choices = [choice.value for choice in field.choices]
    out_of_rows = field.name.endswith("_id") and not 0 <= value < rows
    if out_of_rows or (choices and field.name != "norm_eps" and value not in choices):
        raise ValueError
    return value


def _name(key: str) -> str:
    """The last part of a key, as the tables have it."""
    return _plain(key.rpartition(".")[2])


def _inside(key: str, place: str) -> bool:
    return key.startswith(f"{place}.") if place else "." not in key
