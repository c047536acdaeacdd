"""Anatomy of a model: which stacks, attentions and sub-layers a config implies.

    encoder and decoder    the encoder reads the source, the decoder writes the target and reads both
    decoder-only           reads a prompt and continues it; there is nothing else to read
    encoder-only           reads, and writes nothing; with an MLM head it predicts the piece at each token

Only this module decides it. Ask it for all stacks or attentions, or for one: an error says in one sentence that the
model lacks it. It knows sizes and names, but no parameters.

Source: Vaswani et al. (2017), section 3.1 and 3.2.3, which names the three attentions.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.config import ModelConfig

Kind = Literal["encoder", "decoder", "cross"]
"""The attentions: each stack's self-attention is called by its stack."""

StackName = Literal["encoder", "decoder"]
Sublayer = Literal["self_attn", "cross_attn", "ffn"]

_MISSING: dict[Kind, Sentence] = {
    "encoder": say("This model has no encoder: it is decoder-only."),
    "decoder": say("This model has no decoder: it is encoder-only and writes nothing."),
    "cross": say(
        "This model has no cross-attention. Cross-attention is how a decoder reads an encoder, and this model has "
        "only one of the two."
    ),
}


@dataclass(frozen=True)
class Attention:
    """One of a model's attentions; every layer of its stack has one."""

    kind: Kind  # its name
    stack: StackName  # whose layers have it; the queries are this stack's tokens
    keys_from: StackName  # whose tokens the keys and values are
    sublayer: Sublayer  # its place in a layer
    causal: bool  # whether a query sees only what came before it, and itself
    n_layers: int  # layers of its stack

    def place(self, layer: int | str) -> str:
        """The start of one layer's site names, such as `decoder.2.cross_attn`; layer "*" means all."""
        return f"{self.stack}.{layer}.{self.sublayer}"

    def site(self, layer: int | str, name: str) -> str:
        """One site, such as `decoder.2.cross_attn.weights`; layer "*" means all."""
        return f"{self.place(layer)}.{name}"


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder."""

    name: StackName  # which
    n_layers: int  # its layers, alike
    sublayers: tuple[Sublayer, ...]  # of each layer, in the order of the computation


@dataclass(frozen=True)
class Anatomy:
    """All of a model's parts."""

    stacks: tuple[Stack, ...]  # the encoder before the decoder
    attentions: tuple[Attention, ...]  # in the order of the computation
    fills: bool = False  # whether it is encoder-only with an MLM head

    @property
    def reads(self) -> bool:
        """Whether there is an encoder, which reads the source; if not, the decoder reads it as its prompt."""
        return any(stack.name == "encoder" for stack in self.stacks)

    @property
    def writes(self) -> bool:
        """Whether there is a decoder, which writes; if not, there are vectors, but no steps."""
        return any(stack.name == "decoder" for stack in self.stacks)

    @property
    def gives_logits(self) -> bool:
        """Whether its vectors become logits, of the next piece or of the piece at the token itself."""
        return self.writes or self.fills

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The names of the attentions."""
        return tuple(attention.kind for attention in self.attentions)

    def stack(self, name: StackName) -> Stack:
        """One stack; a QueryError if the model does not have it."""
        for stack in self.stacks:
            if stack.name == name:
                return stack
        raise QueryError(_MISSING[name])

    def attention(self, kind: Kind) -> Attention:
        """One attention; a QueryError if the model does not have it."""
        for attention in self.attentions:
            if attention.kind == kind:
                return attention
        raise QueryError(_MISSING[kind])


@lru_cache(maxsize=64)
def anatomy(config: ModelConfig) -> Anatomy:
    """The parts of a model with these features."""
    return _parts(config.n_encoder_layers, config.n_decoder_layers, fills=config.mlm_head)


def _parts(n_encoder: int, n_decoder: int, *, fills: bool = False) -> Anatomy:
    n_both = n_decoder if n_encoder else 0  # layers of a decoder that has an encoder to read
    decoder: tuple[Sublayer, ...] = ("self_attn", "cross_attn", "ffn") if n_both else ("self_attn", "ffn")
    stacks = Stack("encoder", n_encoder, ("self_attn", "ffn")), Stack("decoder", n_decoder, decoder)
    attentions = (
        Attention("encoder", "encoder", "encoder", "self_attn", causal=False, n_layers=n_encoder),
        Attention("decoder", "decoder", "decoder", "self_attn", causal=True, n_layers=n_decoder),
        Attention("cross", "decoder", "encoder", "cross_attn", causal=False, n_layers=n_both),
    )
    return Anatomy(
        tuple(stack for stack in stacks if stack.n_layers),
        tuple(attention for attention in attentions if attention.n_layers),
        fills,
    )


EVERY_PART = _parts(1, 1)
"""A model with both stacks: every name that can occur. Its numbers of layers mean nothing."""
