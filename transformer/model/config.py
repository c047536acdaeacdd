"""Model config: a frozen record of features, checked when it is made and stored as JSON.

A `ModelConfig` names features (where the norms are, how positions work, which tables are shared), never model
families. It knows nothing of torch: everything that depends on a size is checked here first, so a wrong value is
refused before any memory is allocated for it.

Source of the defaults: Vaswani et al., "Attention Is All You Need" (2017), sections 3 and 5.4, with smaller sizes.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from transformer.errors import ConfigError, shown
from transformer.model.attention_features import AttentionFeatures
from transformer.model.config_fields import Activation, Ids, Layers, Writing, check_number, check_type, check_whole
from transformer.model.position_kinds import KINDS, Placing, PositionKind

FORMAT_VERSION = 1

Normalisation = Literal["nfc", "simplified-chinese"]

# Far above any model this project is for, far below what would exhaust a machine.
MAX_LAYERS = 64
MAX_WIDTH = 16_384
MAX_VOCAB = 1_000_000
MAX_LENGTH = 32_768
MAX_PARAMETERS = 10_000_000_000  # the "7 B" class in 16 bits; loading checks what fits into memory
DROPOUTS = ("dropout", "attention_dropout", "ffn_dropout")  # fields that only training reads
MAX_POSITION_VALUES = 2**25  # max_len * d_model: the sinusoids are computed, not counted as parameters


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Layers, AttentionFeatures, Ids, Writing):
    """The features of one Transformer: an encoder and a decoder, or one of them.

    A decoder-only model continues its source, the prompt. An encoder-only model writes nothing: it computes a vector
    for each token, or with an MLM head logits. `transformer.model.anatomy` says what follows from a config. `Layers`
    has the fields of a layer, `Ids` those of special ids, `Writing` the rules of decoding, and `AttentionFeatures`
    positions and attention beyond the paper.

    Raises:
        ConfigError: A value is of the wrong type or out of range; names the field.
    """

    n_encoder_layers: int  # encoder layers, 1 to 64; 0 for a decoder-only model
    n_decoder_layers: int  # decoder layers, 1 to 64; 0 for an encoder-only model
    d_model: int  # Width of the residual stream. May be odd.
    n_heads: int  # attention heads in every attention
    d_ff: int  # width of the feed-forward layer
    src_vocab_size: int  # rows of the source embedding
    tgt_vocab_size: int  # rows of the target embedding, and number of logits
    # Width of each head; 0 is replaced by `d_model / n_heads`, which must be whole.
    d_head: int = 0
    # Key-value heads, each shared by `n_heads / n_kv_heads` query heads; 0 is replaced by `n_heads`, one for each.
    n_kv_heads: int = 0
    # Heads in the decoder's attentions, if not `n_heads`; their total width is the same.
    n_decoder_heads: int = 0
    d_decoder_ff: int = 0  # width of its feed-forward layer; 0, also for `n_decoder_heads`: the encoder's (see `of`)
    # One vocabulary, one tokenizer and one embedding table for both sides; always so in a model with one stack.
    shared_vocab: bool = False
    output_bias: bool = False  # A bias on the logits
    output_scale: float = 1.0  # the last vectors are multiplied by it before they become logits
    logit_cap: float | None = None  # soft limit c of the logits, c tanh(z / c); None for no limit
    # An encoder-only model ends with a head that computes logits for each token (see `transformer.model.transformer`).
    mlm_head: bool = False
    mlm_activation: Activation = "gelu"  # non-linearity of that head
    positions: PositionKind = "sinusoidal"  # with "none" only the causal mask shows order
    scale_embedding: bool = True  # multiply token embeddings by sqrt(d_model) before adding positions
    embedding_norm: bool = False  # A norm after the embedding's sum
    n_token_types: int = 0  # rows of a table of token types that the encoder adds to its embedding; 0 for none
    tie_output: bool = True  # the output projection is the target embedding table
    max_len: int = 256  # most tokens on either side, special ones included
    dropout: float = 0.1  # probability that training zeroes a value of an embedding sum or a sub-layer's output
    attention_dropout: float = 0.0  # the same for attention weights
    ffn_dropout: float = 0.0  # the same for the values inside the feed-forward layers
    # Steps applied to source text before the tokenizer, in order.
    normalisation: tuple[Normalisation, ...] = ("nfc",)

    def __post_init__(self) -> None:
        self._settle_attention(self.positions)
        kinds = get_type_hints(type(self))  # `field.type` may be the text of an annotation instead of its meaning
        # They check their own.
        apart = {field.name for part in (AttentionFeatures, Writing) for field in fields(part)}
        for field in fields(self):
            value, kind = getattr(self, field.name), kinds[field.name]
            if get_origin(kind) is tuple and isinstance(value, list):  # from JSON, which has no tuples
                nested = get_origin(get_args(kind)[0]) is tuple
                value = tuple(tuple(one) if nested and isinstance(one, list) else one for one in value)
                object.__setattr__(self, field.name, value)
            if field.name not in apart:
                check_type(field.name, value, kind)
        self._check_sizes()
        self._check_heads()
        self._settle_decoder()
        self._check_attention(
            self.positions, d_head=self.d_head, n_encoder=self.n_encoder_layers, n_decoder=self.n_decoder_layers
        )
        self._check_vocabularies()
        self._check_output()
        n_stacks = (self.n_encoder_layers > 0) + (self.n_decoder_layers > 0)
        self.check_layers(d_model=self.d_model, n_stacks=n_stacks)
        self.check_ids(src_size=self.src_vocab_size, tgt_size=self.tgt_vocab_size, max_len=self.max_len)
        self._check_writing(size=self.tgt_vocab_size, closed=self.never_written)
        self._check_parameters()

    def _check_sizes(self) -> None:
        for name, least, most in (
            ("n_encoder_layers", 0, MAX_LAYERS), ("n_decoder_layers", 0, MAX_LAYERS), ("d_model", 1, MAX_WIDTH),
            ("n_heads", 1, MAX_WIDTH), ("n_decoder_heads", 0, MAX_WIDTH), ("n_kv_heads", 0, MAX_WIDTH),
            ("d_head", 0, MAX_WIDTH), ("d_ff", 1, MAX_WIDTH * 8), ("d_decoder_ff", 0, MAX_WIDTH * 8),
            ("src_vocab_size", 1, MAX_VOCAB), ("tgt_vocab_size", 1, MAX_VOCAB), ("max_len", 1, MAX_LENGTH),
        ):  # fmt: skip
            value = getattr(self, name)
            check_whole(name, value, least=least, most=most)
        if not self.n_encoder_layers + self.n_decoder_layers:
            raise ConfigError(
                "n_decoder_layers", "found 0, and there are no encoder layers either; a model needs at least one layer."
            )
        for name in DROPOUTS:
            if not 0.0 <= (value := getattr(self, name)) < 1.0:
                raise ConfigError(
                    name, "found {found}, expected a probability of at least 0 and less than 1.", found=shown(value)
                )

    def _check_heads(self) -> None:
        """Check the heads, and put numbers in the place of 0."""
        if not self.d_head and self.d_model % self.n_heads:
            raise ConfigError(
                "n_heads",
                "d_model = {d_model} cannot be split into {n_heads} heads of equal width; choose a divisor of "
                "d_model, such as {divisors}, or set d_head.",
                d_model=self.d_model,
                n_heads=self.n_heads,
                divisors=_divisors(self.d_model),
            )
        object.__setattr__(self, "d_head", self.d_head or self.d_model // self.n_heads)
        object.__setattr__(self, "n_kv_heads", self.n_kv_heads or self.n_heads)
        if self.n_heads % self.n_kv_heads:
            raise ConfigError(
                "n_kv_heads",
                "{n_heads} heads cannot evenly share {n_kv_heads} key-value heads; choose a divisor of n_heads, "
                "such as {divisors}.",
                n_heads=self.n_heads,
                n_kv_heads=self.n_kv_heads,
                divisors=_divisors(self.n_heads),
            )

    def _settle_decoder(self) -> None:
        """Check what the decoder has of its own; a number that is the encoder's says nothing."""
        for name, shared in (("n_decoder_heads", self.n_heads), ("d_decoder_ff", self.d_ff)):
            if getattr(self, name) == shared:
                object.__setattr__(self, name, 0)
            elif getattr(self, name) and not (self.n_encoder_layers and self.n_decoder_layers):
                raise ConfigError(
                    name,
                    "found {found}, but this model has only an encoder or only a decoder; set the value to 0.",
                    found=getattr(self, name),
                )
        found, width = self.n_decoder_heads, self.n_heads * self.d_head
        if found and (self.n_kv_heads != self.n_heads or width % found):
            raise ConfigError(
                "n_decoder_heads",
                "found {found}, expected a divisor of {width}; n_kv_heads must also be equal to n_heads.",
                found=found,
                width=width,
            )

    @property
    def placing(self) -> Placing:
        """The record of its kind of positions."""
        return KINDS[self.positions]

    def of(self, stack: Literal["encoder", "decoder"]) -> Self:
        """The config for one stack, with the stack's own `n_heads`, `d_head`, `n_kv_heads` and `d_ff`."""
        if stack == "encoder" or not (self.n_decoder_heads or self.d_decoder_ff):
            return self
        heads, d_ff = self.n_decoder_heads or self.n_heads, self.d_decoder_ff or self.d_ff
        return replace(
            self, n_heads=heads, n_kv_heads=heads if self.n_decoder_heads else self.n_kv_heads, d_ff=d_ff,
            d_head=self.n_heads * self.d_head // heads, n_decoder_heads=0, d_decoder_ff=0,
        )  # fmt: skip

    def _check_vocabularies(self) -> None:
        if self.shared_vocab and self.src_vocab_size != self.tgt_vocab_size:
            raise ConfigError(
                "shared_vocab",
                "both sides of a shared vocabulary must have the same size, found src_vocab_size = {source_size} "
                "and tgt_vocab_size = {target_size}.",
                source_size=self.src_vocab_size,
                target_size=self.tgt_vocab_size,
            )
        if not self.shared_vocab and 0 in (self.n_encoder_layers, self.n_decoder_layers):
            raise ConfigError(
                "shared_vocab",
                "found false, but a model with only an encoder or only a decoder has one vocabulary; set it to true.",
            )

    def _check_output(self) -> None:
        if self.sinusoid_layout == "fairseq" and self.pad_id is None:
            raise ConfigError("pad_id", "is null, but fairseq's sinusoids count positions from this id; give the id.")
        for name, least, most in (("output_scale", 1e-6, 1e6), ("logit_cap", 1e-6, 1e6), ("n_token_types", 0, 1024)):
            value = getattr(self, name)
            check_number(name, value, least=least, most=most, optional=True)
        if self.mlm_head and self.n_decoder_layers:
            raise ConfigError(
                "mlm_head", "found true in a model with a decoder; only encoder-only models have an MLM head."
            )
        if self.n_token_types and not self.n_encoder_layers:
            raise ConfigError(
                "n_token_types", "token types belong to the encoder, and this model has no encoder; set it to 0."
            )

    def _check_parameters(self) -> None:
        if self.placing.adds == "table" and self.max_len * self.d_model > MAX_POSITION_VALUES:
            raise ConfigError(
                "max_len",
                "found {found} with d_model = {d_model}; the table of positions can have at most {most:,} values, "
                "which is {positions:,} positions at this width.",
                found=self.max_len,
                d_model=self.d_model,
                most=MAX_POSITION_VALUES,
                positions=MAX_POSITION_VALUES // self.d_model,
            )
        n_parameters = self.count_parameters()
        if n_parameters > MAX_PARAMETERS:
            raise ConfigError(
                "d_model",
                "these sizes give {n:,} parameter; the limit is {most:,}.",
                "these sizes give {n:,} parameters; the limit is {most:,}.",
                n_parameters,
                most=MAX_PARAMETERS,
            )

    def count_parameters(self) -> int:
        """Number of learned values, computed without building the model."""
        d, bias = self.d_model, self.biases
        both = bool(self.n_encoder_layers and self.n_decoder_layers)  # then the decoder reads the encoder
        norm = 0 if self.norm_kind == "none" else d + bias.norms * d
        count = 0
        for own, n_layers, n_attentions in (
            (self.of("encoder"), self.n_encoder_layers, 1), (self.of("decoder"), self.n_decoder_layers, 1 + both),
        ):  # fmt: skip
            if n_layers:
                positions = math.prod(self.placing.parameters(own)) if self.placing.parameters else 0
                once = positions + norm * (self.final_norm + self.embedding_norm)
                count += n_layers * own._count_layer(n_attentions, norm) + once
        tables = (self.src_vocab_size + (0 if self.shared_vocab else self.tgt_vocab_size) + self.n_token_types) * d
        head = (d * d + bias.ffn * d + norm) * self.mlm_head
        output = self.tgt_vocab_size * (d * (not self.tie_output) + self.output_bias)
        return count + tables + head + (output if self.n_decoder_layers or self.mlm_head else 0)

    def _count_layer(self, n_attentions: int, norm: int) -> int:
        """Learned values of one layer, whose norms have so many each."""
        d, bias = self.d_model, self.biases
        queries, keys = self.n_heads * self.d_head, self.n_kv_heads * self.d_head
        attention = 2 * d * (queries + keys) + bias.attention * (queries + 2 * keys) + bias.attention_output * d
        attention += 2 * self.d_head * self.qk_norm
        n_up = 1 + self.gated  # linear maps up to d_ff
        feed_forward = (n_up + 1) * d * self.d_ff + bias.ffn * (n_up * self.d_ff + d)
        norms = norm * (2 if self.norm == "both" else 1)  # around each sub-layer
        return n_attentions * attention + feed_forward + (n_attentions + 1) * norms

    def to_json(self) -> str:
        """The config as JSON, with the version of the format."""
        inherited = {field.name for cls in (Layers, AttentionFeatures, Ids, Writing) for field in fields(cls)}
        record, names = asdict(self), sorted((f.name for f in fields(self)), key=lambda name: name in inherited)
        record = {"format_version": FORMAT_VERSION, **{name: record[name] for name in names}}  # the inherited last
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_mapping(cls, record: Mapping[str, Any]) -> Self:
        """Build a config from parsed JSON; unknown keys are left out (see `unknown_keys`), errors as of the class."""
        if not isinstance(record, Mapping):
            raise ConfigError("config", "expected a JSON object, found {found}.", found=type(record).__name__)
        version = record.get("format_version")
        if type(version) is not int or version != FORMAT_VERSION:  # 1.0 and True are equal to 1, too
            raise ConfigError(
                "format_version",
                "found {found}, but this program reads version {version}.",
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
