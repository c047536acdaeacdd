"""What a model is: a frozen record of features, checked when it is made, plain enough for JSON.

A `ModelConfig` names features (where the norms sit, what gives order, whether tables are shared), never model
families. It knows nothing of torch: everything that depends on a size is checked here first, so that a wrong
value is refused before anything is allocated for it.

Source of the defaults: Vaswani et al., "Attention Is All You Need" (2017), sections 3 and 5.4; made small.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, Self, get_args, get_type_hints

from transformer.errors import ConfigError, shown
from words import say, say_n

FORMAT_VERSION = 1

NormPlace = Literal["pre", "post"]
Activation = Literal["relu", "gelu"]
PositionKind = Literal["sinusoidal", "learned"]
Normalisation = Literal["nfc", "simplified-chinese"]

# Far above any model this project is for, far below what would exhaust a machine.
MAX_LAYERS = 64
MAX_WIDTH = 16_384
MAX_VOCAB = 1_000_000
MAX_LENGTH = 32_768
MAX_PARAMETERS = 1_000_000_000
MAX_POSITION_VALUES = 2**25  # max_len * d_model: the sinusoids are computed, not counted as parameters


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The features of one Transformer: an encoder and a decoder, or one of them alone.

    A decoder alone goes on with the text that it is given, its prompt, and is its own source. An encoder alone writes
    nothing: it gives a vector for each token. `transformer.model.anatomy` says what follows from a config.

    Attributes:
        n_encoder_layers: Encoder layers, 1 to 64; 0 for a decoder alone.
        n_decoder_layers: Decoder layers, 1 to 64; 0 for an encoder alone.
        d_model: Width of the residual stream. May be odd.
        n_heads: Attention heads in every attention.
        d_ff: Width of the feed-forward layer.
        src_vocab_size: Rows of the source embedding.
        tgt_vocab_size: Rows of the target embedding, and number of logits.
        d_head: Width of each head; 0 stands for `d_model / n_heads`, which must be whole, and is replaced by it.
        n_kv_heads: Heads of keys and values, each shared by `n_heads / n_kv_heads` heads of queries; 0 stands for
            `n_heads`, one for each, and is replaced by it.
        shared_vocab: One vocabulary, one tokenizer and one embedding table for both sides; a model of one stack has
            no other.
        norm: "pre" normalises the input of each sub-layer, "post" its sum with the residual.
        final_norm: One more norm after the last encoder layer and after the last decoder layer.
        norm_eps: The epsilon of every norm.
        activation: Non-linearity of the feed-forward layer.
        bias: Biases in the attention projections, the feed-forward layers and the norms.
        output_bias: A bias on the logits.
        positions: "sinusoidal" (a formula) or "learned" (a table of parameters).
        scale_embedding: Multiply token embeddings by sqrt(d_model) before adding positions.
        tie_output: The output projection is the target embedding table.
        max_len: Most tokens on either side, special ones included.
        dropout: Probability that training zeroes a value of an embedding sum or a sub-layer's output.
        pad_id, unk_id, bos_id, eos_id: Special ids, the same on both sides.
        decoder_start_id: The id that the decoder reads first; some models use their `pad_id`.
        prepend_source_bos: The source begins with `bos_id`.
        append_source_eos: The source ends with `eos_id`.
        normalisation: Steps that source text goes through before the tokenizer, in order.

    Raises:
        ConfigError: A value is of the wrong type or out of range; names the field.
    """

    n_encoder_layers: int
    n_decoder_layers: int
    d_model: int
    n_heads: int
    d_ff: int
    src_vocab_size: int
    tgt_vocab_size: int
    d_head: int = 0
    n_kv_heads: int = 0
    shared_vocab: bool = False
    norm: NormPlace = "pre"
    final_norm: bool = True
    norm_eps: float = 1e-5
    activation: Activation = "relu"
    bias: bool = True
    output_bias: bool = False
    positions: PositionKind = "sinusoidal"
    scale_embedding: bool = True
    tie_output: bool = True
    max_len: int = 256
    dropout: float = 0.1
    pad_id: int = 0
    unk_id: int = 1
    bos_id: int = 2
    eos_id: int = 3
    decoder_start_id: int = 2
    prepend_source_bos: bool = False
    append_source_eos: bool = True
    normalisation: tuple[Normalisation, ...] = ("nfc",)

    def __post_init__(self) -> None:
        if isinstance(self.normalisation, list):  # JSON has no tuples
            object.__setattr__(self, "normalisation", tuple(self.normalisation))
        self._check_types()
        self._check_sizes()
        self._check_heads()
        self._check_vocabularies()
        self._check_ids()
        self._check_parameters()

    def _check_types(self) -> None:
        kinds = get_type_hints(type(self))  # `field.type` may be the text of an annotation instead of its meaning
        for field in fields(self):
            value, kind = getattr(self, field.name), kinds[field.name]
            if kind in (int, float, bool):
                _check_scalar(field.name, value, kind)
            elif field.name == "normalisation":
                _check_normalisation(value)
            else:
                _check_choice(field.name, value, get_args(kind))

    def _check_sizes(self) -> None:
        for name, least, most in (
            ("n_encoder_layers", 0, MAX_LAYERS),
            ("n_decoder_layers", 0, MAX_LAYERS),
            ("d_model", 1, MAX_WIDTH),
            ("n_heads", 1, MAX_WIDTH),
            ("d_ff", 1, MAX_WIDTH * 8),
            ("src_vocab_size", 1, MAX_VOCAB),
            ("tgt_vocab_size", 1, MAX_VOCAB),
            ("d_head", 0, MAX_WIDTH),
            ("n_kv_heads", 0, MAX_WIDTH),
            ("max_len", 1, MAX_LENGTH),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                found = shown(value)
                raise ConfigError(
                    name, "found {found}, expected {least} to {most:,}.", found=found, least=least, most=most
                )
        if not self.n_encoder_layers + self.n_decoder_layers:
            raise ConfigError("n_decoder_layers", "found 0, and no encoder layers either; a model needs a layer.")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(
                "dropout", "found {found}, expected a probability from 0 to below 1.", found=shown(self.dropout)
            )
        if not 0.0 < self.norm_eps <= 0.1:
            raise ConfigError(
                "norm_eps", "found {found}, expected a number above 0, at most 0.1.", found=shown(self.norm_eps)
            )

    def _check_heads(self) -> None:
        """Check the heads, and put numbers in the place of 0."""
        if not self.d_head and self.d_model % self.n_heads:
            raise ConfigError(
                "n_heads",
                "d_model = {d_model} cannot be split into {n_heads} heads of equal width; choose a "
                "divisor of d_model, such as {divisors}, or say d_head.",
                d_model=self.d_model,
                n_heads=self.n_heads,
                divisors=_divisors(self.d_model),
            )
        object.__setattr__(self, "d_head", self.d_head or self.d_model // self.n_heads)
        object.__setattr__(self, "n_kv_heads", self.n_kv_heads or self.n_heads)
        if self.n_heads % self.n_kv_heads:
            raise ConfigError(
                "n_kv_heads",
                "{n_heads} heads cannot share {n_kv_heads} heads of keys and values evenly; choose a "
                "divisor of n_heads, such as {divisors}.",
                n_heads=self.n_heads,
                n_kv_heads=self.n_kv_heads,
                divisors=_divisors(self.n_heads),
            )

    def _check_vocabularies(self) -> None:
        if self.shared_vocab and self.src_vocab_size != self.tgt_vocab_size:
            raise ConfigError(
                "shared_vocab",
                "one shared vocabulary needs equal sizes, found src_vocab_size = {source_size} and "
                "tgt_vocab_size = {target_size}.",
                source_size=self.src_vocab_size,
                target_size=self.tgt_vocab_size,
            )
        if not self.shared_vocab and 0 in (self.n_encoder_layers, self.n_decoder_layers):
            raise ConfigError("shared_vocab", "found false; a model of one stack has one vocabulary, so it is true.")

    def _check_ids(self) -> None:
        smallest = min(self.src_vocab_size, self.tgt_vocab_size)
        for name in ("pad_id", "unk_id", "bos_id", "eos_id", "decoder_start_id"):
            value = getattr(self, name)
            if not 0 <= value < smallest:
                found, last = shown(value), smallest - 1
                raise ConfigError(
                    name,
                    "found {found}, expected 0 to {last} (the smaller vocabulary's ids).",
                    found=found,
                    last=last,
                )
        if self.eos_id == self.pad_id:
            raise ConfigError(
                "eos_id", "equals pad_id ({pad_id}); padding would end every sentence.", pad_id=self.pad_id
            )

    def _check_parameters(self) -> None:
        if self.max_len * self.d_model > MAX_POSITION_VALUES:
            raise ConfigError(
                "max_len",
                "found {found} with d_model = {d_model}; the table of positions may hold {most:,} "
                "values, that is {positions:,} positions.",
                found=self.max_len,
                d_model=self.d_model,
                most=MAX_POSITION_VALUES,
                positions=MAX_POSITION_VALUES // self.d_model,
            )
        n_parameters = self.count_parameters()
        if n_parameters > MAX_PARAMETERS:
            raise ConfigError(
                "d_model",
                say_n(
                    "these sizes give {n:,} parameter; the limit is {most:,}.",
                    "these sizes give {n:,} parameters; the limit is {most:,}.",
                    n_parameters,
                    most=MAX_PARAMETERS,
                ),
            )

    def count_parameters(self) -> int:
        """Number of learned values, by arithmetic: nothing is built."""
        d, bias = self.d_model, int(self.bias)
        queries, keys = self.n_heads * self.d_head, self.n_kv_heads * self.d_head
        attention = 2 * d * (queries + keys) + bias * (queries + 2 * keys + d)
        feed_forward = 2 * d * self.d_ff + bias * (self.d_ff + d)
        norm = d + bias * d
        both = bool(self.n_encoder_layers and self.n_decoder_layers)  # then the decoder reads the encoder
        encoder_layer = attention + feed_forward + 2 * norm
        decoder_layer = (1 + both) * attention + feed_forward + (2 + both) * norm
        layers = self.n_encoder_layers * encoder_layer + self.n_decoder_layers * decoder_layer
        positions = self.max_len * d if self.positions == "learned" else 0
        once = (1 + both) * (positions + (norm if self.final_norm else 0))  # in each stack
        tables = (self.src_vocab_size + (0 if self.shared_vocab else self.tgt_vocab_size)) * d
        output = self.tgt_vocab_size * (d * (not self.tie_output) + self.output_bias)
        return layers + once + tables + (output if self.n_decoder_layers else 0)

    def to_json(self) -> str:
        """The config as JSON, with the format's version."""
        record = {"format_version": FORMAT_VERSION, **asdict(self)}
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """Build a config from parsed JSON; keys that it does not know are left out (see `unknown_keys`).

        Raises:
            ConfigError: A required key is missing, or a value is refused; names the field.
        """
        if not isinstance(record, Mapping):
            raise ConfigError("config", "expected a JSON object, found {kind}.", kind=type(record).__name__)
        version = record.get("format_version")
        if type(version) is not int or version != FORMAT_VERSION:  # 1.0 and True are equal to 1, too
            raise ConfigError(
                "format_version",
                "found {found}, this program reads {version}.",
                found=shown(version),
                version=FORMAT_VERSION,
            )
        for field in fields(cls):
            if field.default is MISSING and field.name not in record:
                raise ConfigError(field.name, "is missing.")
        return cls(**{field.name: record[field.name] for field in fields(cls) if field.name in record})


def unknown_keys(record: Mapping[str, Any]) -> list[str]:
    """Keys of a parsed config.json that `ModelConfig` does not know; they are ignored and reported."""
    names = {field.name for field in fields(ModelConfig)} | {"format_version"}
    return sorted(str(key) for key in record if key not in names)


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, min(number, 64) + 1) if number % n == 0)


def _check_scalar(name: str, value: object, kind: Any) -> None:
    accepted = (int, float) if kind is float else kind
    # bool is an int in Python, but `n_heads: true` is a mistake.
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        expected = _KIND_NAMES[kind]
        raise ConfigError(name, "found {found}, expected {expected}.", found=shown(value), expected=expected)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(
            name, "found {found}, expected one of {choices}.", found=shown(value), choices=", ".join(choices)
        )


def _check_normalisation(steps: object) -> None:
    if not isinstance(steps, tuple):
        raise ConfigError("normalisation", "found {found}, expected a list of names.", found=shown(steps))
    for step in steps:
        if not isinstance(step, str):
            raise ConfigError("normalisation", "found {found}, expected a name.", found=shown(step))
        _check_choice("normalisation", step, get_args(Normalisation))


_KIND_NAMES = {int: say("a whole number"), float: say("a number"), bool: say("true or false")}
