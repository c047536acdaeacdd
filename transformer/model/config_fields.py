"""Parts of a config: ids, how a layer is built, rules of generation; and the checks of their values.

**Ids** say which ids are special, and which are added around a text.

    source     (bos) prefix, the pieces of the text, (eos) suffix
    output     decoder_start_id is read first; forced_ids are written first; then the model chooses, until an end id

**Layers.** The defaults are those of a plain pre-norm Transformer; `transformer.model.norms` and
`transformer.model.feed_forward` name the sources of others.

**Rules of generation** are not part of the model's arithmetic: its probabilities stay the same, and the rules change
which piece is chosen. `transformer.runs.distribution` says what each does. Their "text" is the start piece or the
prompt, then what has been written so far.

**Checks.** Types are checked by hand because values come from other people's files: JSON has no tuples, and Python
takes `true` for a whole number. An error is one sentence with the field, the value found and what was expected.

Source: Vaswani et al. (2017) has the padding, start and end pieces; Johnson et al., "Google's Multilingual Neural
Machine Translation System" (2017), for a piece before the source that names a language; Tang et al., "Multilingual
Translation with Extensible Multilingual Pretraining and Finetuning" (2020), for one that the output must begin with;
Keskar et al., "CTRL" (2019), section 4.1, for the repetition penalty; Paulus et al., "A Deep Reinforced Model for
Abstractive Summarization" (2018), section 2.5, for runs of pieces that may not repeat; other rules are those of
`GenerationConfig` in Hugging Face's transformers. This module knows nothing of torch, nor of the rest of a config.
"""

from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from transformer.errors import ConfigError, shown
from transformer.i18n import say

_LISTS = ("source_prefix", "source_suffix", "forced_ids", "banned_ids", "further_eos_ids")


@dataclass(frozen=True, kw_only=True)
class Ids:
    """Special ids, and the wrapping of source and output."""

    # Special ids, the same on both sides; all but `eos_id` may be None: the model has no such piece. Without `pad_id`
    # no token counts as padding.
    pad_id: int | None = 0
    unk_id: int | None = 1
    bos_id: int | None = 2
    eos_id: int = 3
    further_eos_ids: tuple[int, ...] = ()  # more ids that end the output
    decoder_start_id: int = 2  # the id that the decoder reads first; some models use their `pad_id`
    prepend_source_bos: bool = False  # the source begins with `bos_id`
    append_source_eos: bool = True  # the source ends with `eos_id`
    source_prefix: tuple[int, ...] = ()  # ids before the text, after `bos_id` if that is prepended
    source_suffix: tuple[int, ...] = ()  # ids after the text, after `eos_id` if that is appended
    # Ids that every output begins with, unless a query forces others in their places.
    forced_ids: tuple[int, ...] = ()
    banned_ids: tuple[int, ...] = ()  # ids that are never written; `pad_id` never is

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Every id that ends an output."""
        return (self.eos_id, *self.further_eos_ids)

    @property
    def never_written(self) -> tuple[int, ...]:
        """Every id that decoding may not choose. Padding is included: a mask would hide it from all later steps."""
        return tuple(sorted({*self.banned_ids, *(() if self.pad_id is None else (self.pad_id,))}))

    @property
    def fill_id(self) -> int:
        """The id that fills short rows of a batch: padding, or in a model without it one written after the end."""
        return self.eos_id if self.pad_id is None else self.pad_id

    @property
    def source_start(self) -> tuple[int, ...]:
        """The ids before the text."""
        return (*((self.bos_id,) if self.prepend_source_bos and self.bos_id is not None else ()), *self.source_prefix)

    @property
    def source_end(self) -> tuple[int, ...]:
        """The ids after the text."""
        return (*((self.eos_id,) if self.append_source_eos else ()), *self.source_suffix)

    def check_ids(self, *, src_size: int, tgt_size: int, max_len: int) -> None:
        """Check them against the sizes of both vocabularies and the longest text; a ConfigError names the field."""
        for name in ("pad_id", "unk_id", "bos_id", "eos_id", "decoder_start_id"):
            _check_range(name, getattr(self, name), min(src_size, tgt_size))
        for name in _LISTS:
            for i in getattr(self, name):
                _check_range(name, i, src_size if name.startswith("source") else tgt_size)
        if self.prepend_source_bos and self.bos_id is None:
            raise ConfigError(
                "bos_id", "is null, but prepend_source_bos is true; give the id, or set prepend_source_bos to false."
            )
        for name, ids in (("eos_id", (self.eos_id,)), ("further_eos_ids", self.further_eos_ids)):
            if self.pad_id in ids:
                raise ConfigError(
                    name, "equals pad_id ({pad_id}), so padding would end every sentence.", pad_id=self.pad_id
                )
        if self.eos_id in self.banned_ids:
            raise ConfigError("banned_ids", "contains eos_id ({eos_id}), so no sentence would end.", eos_id=self.eos_id)
        for i in self.forced_ids:
            if i in self.never_written:
                raise ConfigError(
                    "forced_ids",
                    "contains {i}, the id of a token that is never written, because it is pad_id or in banned_ids.",
                    i=i,
                )
        for name, n in (
            ("source_prefix", len(self.source_prefix) + len(self.source_suffix)),
            ("forced_ids", len(self.forced_ids)),
        ):
            if n and n >= max_len:
                raise ConfigError(
                    name, "{n} ids leave no room for text; the model reads at most {most} tokens.", n=n, most=max_len
                )


def _check_range(name: str, value: int | None, size: int) -> None:
    if value is not None and not 0 <= value < size:
        raise ConfigError(
            name, "found {found}, expected 0 to {last} (the smaller vocabulary's ids).", found=shown(value),
            last=size - 1,
        )  # fmt: skip


NormPlace = Literal["pre", "post", "both"]
NormKind = Literal["layer", "rms", "deviation", "biased_deviation", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "none"]


@dataclass(frozen=True)
class Biases:
    """Where biases are, each field for itself."""

    attention: bool  # on queries, keys and values
    attention_output: bool  # on the output projection of attention
    ffn: bool  # in the feed-forward layers, and in an MLM head's dense map
    norms: bool  # in the norms

    @property
    def everywhere(self) -> bool:
        """Whether all of these have biases."""
        return self.attention and self.attention_output and self.ffn and self.norms

    @property
    def nowhere(self) -> bool:
        """Whether none of these has a bias."""
        return not (self.attention or self.attention_output or self.ffn or self.norms)


@dataclass(frozen=True, kw_only=True)
class Layers:
    """How a layer is built."""

    # "pre" normalises the input of each sub-layer, "post" its sum with the residual; "both" normalises the input, and
    # with another norm the output before it is added.
    norm: NormPlace = "pre"
    # "layer" (mean 0, variance 1), "rms" (divided by the root mean square; no mean taken off, no bias), "deviation" (a
    # layer norm that divides by the unbiased deviation plus epsilon), "biased_deviation" (by the biased one), "none".
    norm_kind: NormKind = "layer"
    final_norm: bool = True  # one more norm after the last encoder layer and after the last decoder layer
    norm_eps: float = 1e-5  # the epsilon of every norm
    # Non-linearity of the feed-forward layer; "gelu" is exact, "gelu_tanh" its approximation; "none": the two linear
    # maps act as one.
    activation: Activation = "relu"
    # The feed-forward layer multiplies the output of the non-linearity by a second linear map.
    gated: bool = False
    # Attention and feed-forward of a layer read the same stream, and both are added to it.
    parallel_residual: bool = False
    residual: bool = True  # a sub-layer's output is added to the stream; if not, it replaces the stream
    bias: bool = True  # biases in the attention projections, the feed-forward layers and the norms
    # The same for one of them: queries, keys and values; the output projection; the feed-forward layers; the norms.
    # None: as in `bias`.
    attention_bias: bool | None = None
    attention_output_bias: bool | None = None
    ffn_bias: bool | None = None
    norm_bias: bool | None = None

    @property
    def biases(self) -> Biases:
        """Where biases are."""

        def said(value: bool | None) -> bool:
            return self.bias if value is None else value

        return Biases(
            attention=said(self.attention_bias),
            attention_output=said(self.attention_output_bias),
            ffn=said(self.ffn_bias),
            norms=said(self.norm_bias) and self.norm_kind not in ("rms", "none"),
        )

    def check_layers(self, *, d_model: int, n_stacks: int) -> None:
        """Check what depends on more than one field; a ConfigError names the field."""
        check_number("norm_eps", self.norm_eps, least=0, most=0.1, above=True)
        if self.norm_kind == "rms" and self.norm_bias:
            raise ConfigError("norm_bias", "found true, but an RMS norm has no bias; set it to false.")
        if self.norm_kind == "none" and self.norm_bias:
            raise ConfigError("norm_bias", "found true, but this model has no norms; set it to false.")
        if self.parallel_residual and not self.residual:
            raise ConfigError(
                "parallel_residual",
                "found true, but parallel sub-layers need residual connections, and this model has none; set it to "
                "false.",
            )
        if self.norm_kind == "deviation" and d_model == 1:
            raise ConfigError(
                "norm_kind",
                "with d_model = 1 there is no unbiased standard deviation; set norm_kind to layer, or choose a "
                "larger d_model.",
            )
        if self.parallel_residual and self.norm != "pre":
            raise ConfigError(
                "parallel_residual",
                "found true, but norm = {norm}; parallel sub-layers need norm = pre.",
                norm=self.norm,
            )
        if self.parallel_residual and n_stacks > 1:
            raise ConfigError(
                "parallel_residual",
                "found true, but this model has cross-attention; parallel sub-layers are defined only for "
                "encoder-only and decoder-only models.",
            )


MAX_COUNT = 10_000_000
MAX_SEQUENCES = 10_000


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The rules of decoding. By default there are none."""

    # Runs of ids that are never written: if the text ends with all but the last, the last is closed.
    banned_sequences: tuple[tuple[int, ...], ...] = ()
    first_banned_ids: tuple[int, ...] = ()  # ids that are closed for the first piece after `forced_ids`
    no_repeat_ngram: int = 0  # runs of this many pieces may not repeat in a text; 0: they may
    # Logits above 0 of pieces in the text are divided by it, those below multiplied; 1: nothing changes.
    repetition_penalty: float = 1.0
    min_length: int = 0  # the end is closed while the text has fewer tokens than this
    min_new: int = 0  # the end is closed while the output has fewer pieces than this
    # Most tokens of a text with its output, if below the model's own limit; None: only that limit.
    max_length: int | None = None
    max_new: int | None = None  # most pieces of an output; None: only the query's limit
    forced_end_id: int | None = None  # the last piece of an output that the length limit cuts; None: nothing is forced

    @property
    def has_rules(self) -> bool:
        """Whether a choice depends on the text before it, or on its place."""
        return (
            bool(self.banned_sequences or self.first_banned_ids or self.no_repeat_ngram)
            or bool(self.min_length or self.min_new)
            or self.repetition_penalty != 1.0
            or self.forced_end_id is not None
        )

    def _check_writing(self, *, size: int, closed: tuple[int, ...]) -> None:
        """Check the fields of this record by the size of the target's vocabulary and what is never written."""
        for name in ("no_repeat_ngram", "min_length", "min_new"):
            check_whole(name, getattr(self, name), least=0, most=MAX_COUNT)
        for name in ("max_length", "max_new"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1, most=MAX_COUNT)
        check_number("repetition_penalty", self.repetition_penalty, least=0.01, most=100.0)
        if not isinstance(self.banned_sequences, tuple) or len(self.banned_sequences) > MAX_SEQUENCES:
            raise ConfigError(
                "banned_sequences",
                "found {found}, expected at most {most:,} lists of ids.",
                found=shown(self.banned_sequences),
                most=MAX_SEQUENCES,
            )
        for sequence in self.banned_sequences:
            if not isinstance(sequence, tuple) or len(sequence) < 2:
                raise ConfigError(
                    "banned_sequences",
                    "found {found}, expected a list of two or more ids; a single id belongs in banned_ids.",
                    found=shown(sequence),
                )
            check_wholes("banned_sequences", sequence, most=size - 1)
        check_wholes("first_banned_ids", self.first_banned_ids, most=size - 1)
        if self.forced_end_id is not None:
            check_wholes("forced_end_id", (self.forced_end_id,), most=size - 1)
            if self.forced_end_id in closed:
                raise ConfigError(
                    "forced_end_id",
                    "contains {i}, the id of a token that is never written, because it is pad_id or in banned_ids.",
                    i=self.forced_end_id,
                )


MAX_NUMBER = 1e12
_KIND_NAMES = {int: say("a whole number"), float: say("a number"), bool: say("true or false")}


def check_scalar(name: str, value: object, kind: Any) -> None:
    """Check that a value is a number, a whole number, true or false."""
    accepted = (int, float) if kind is float else kind
    # bool is an int in Python, but `n_heads: true` is a mistake.
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        expected = _KIND_NAMES[kind]
        raise ConfigError(name, "found {found}, expected {expected}.", found=shown(value), expected=expected)


def check_number(
    name: str, value: object, *, least: float, most: float = MAX_NUMBER, above: bool = False, optional: bool = False
) -> None:
    """Check that a value is a number from (or above) the least to the most, or None if it is optional."""
    if value is None and optional:
        return
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    if least <= number <= most and not (above and number == least):  # false for NaN
        return
    if above:
        raise ConfigError(
            name,
            "found {found}, expected a number above {least:g} and at most {most:g}.",
            found=shown(value),
            least=least,
            most=most,
        )
    raise ConfigError(
        name, "found {found}, expected a number from {least:g} to {most:g}.", found=shown(value), least=least, most=most
    )


def check_whole(name: str, value: object, *, least: int, most: int) -> None:
    """Check that a value is a whole number from the least to the most."""
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise ConfigError(
            name,
            "found {found}, expected a whole number from {least} to {most:,}.",
            found=shown(value),
            least=least,
            most=most,
        )


def check_wholes(name: str, value: object, *, most: int) -> None:
    """Check that a value is a tuple of whole numbers from 0 to the most."""
    if not isinstance(value, tuple):
        raise ConfigError(name, "found {found}, expected a list of whole numbers.", found=shown(value))
    for number in value:
        check_whole(name, number, least=0, most=most)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Check that a value is one of a few names."""
    if value not in choices:
        raise ConfigError(
            name, "found {found}, expected one of {choices}.", found=shown(value), choices=", ".join(choices)
        )


def check_type(name: str, value: object, kind: Any) -> None:
    """Check one value: an `int`, `float`, `bool`, one of a `Literal`'s names, a tuple of one of these, or `None`."""
    if get_origin(kind) is UnionType:
        if value is not None:
            check_type(name, value, get_args(kind)[0])
    elif get_origin(kind) is tuple:
        _check_list(name, value, get_args(kind)[0])
    elif get_origin(kind) is Literal:
        check_choice(name, value, get_args(kind))
    else:
        check_scalar(name, value, kind)


def _check_list(name: str, values: object, kind: Any) -> None:
    if not isinstance(values, tuple):
        if get_origin(kind) is Literal:
            raise ConfigError(name, "found {found}, expected a list of names.", found=shown(values))
        raise ConfigError(name, "found {found}, expected a list of whole numbers.", found=shown(values))
    for value in values:
        if get_origin(kind) is Literal and not isinstance(value, str):
            raise ConfigError(name, "found {found}, expected a name.", found=shown(value))
        check_type(name, value, kind)
