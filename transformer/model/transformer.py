"""The Transformer: embedding, encoder, decoder (both or one), output layer, MLM head.

The encoder reads the whole source and turns it into the memory, one vector per source token. The decoder reads the
target so far and the memory, and computes logits for the next piece after every target token. A decoder-only model
has no memory: its target begins with the prompt. An encoder-only model ends with its memory. Between the last vectors
and the logits some models have more:

    scale      the vectors times a number; T5 uses 1 / sqrt(D), because its table is also the embedding
    MLM head   of an encoder-only model: a dense map, a non-linearity and a norm; then the table
    cap        c tanh(z / c): logits lie between -c and c, in the same order

Source: Vaswani et al. (2017), section 3 and figure 1; Raffel et al., "Exploring the Limits of Transfer Learning"
(2020), for the scale; Devlin et al., "BERT" (2019), section 3.1, for the task of the head; Gemma Team, "Gemma 2"
(2024), section 2, for the cap.

Shapes: B batch, S source tokens, T target tokens, D d_model, V target vocabulary.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer.errors import QueryError
from transformer.model.anatomy import Kind, StackName, anatomy
from transformer.model.attention import MultiHeadAttention
from transformer.model.attention_positions import StackOrder
from transformer.model.attention_scores import capped
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.feed_forward import ACTIVATIONS
from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer.model.masks import causal_mask, combine_masks, padding_mask, within
from transformer.model.module import Dropout, Linear, Module, linear, rows_of
from transformer.model.norms import make_norm
from transformer.model.positions import AS_THEY_STAND, make_positions
from transformer.model.taps import NO_TAP, Tap


class MLMHead(Module):
    """Turns an encoder's vectors into those that are compared with the table."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.proj = Linear(config.d_model, config.d_model, bias=config.biases.ffn)
        self.activation = ACTIVATIONS[config.mlm_activation]
        self.norm = make_norm(config)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[..., D] -> [..., D]."""
        hidden = self.activation(tap("pre_activation", self.proj(x, tap=tap.child("proj"))))
        return tap("output", self.norm(tap("activation", hidden)))


class TokenTypes(Module):
    """A learned vector that says which part of a source a token belongs to; the table has a row for each type.

    Source: Devlin et al., "BERT" (2019), section 3 and figure 2, which calls them segments.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.n_token_types, config.d_model))

    def forward(self, ids: Tensor, types: Tensor | None = None) -> Tensor:
        """Ids [B, T] -> their types' vectors [B, T, D]; every type is 0 unless `types` [B, T] says otherwise."""
        return self.table[torch.zeros_like(ids) if types is None else types]


class Embedding(Module):
    """Token ids to vectors: a row of the table for each token, plus the vector of its position.

    Some models add a third vector, of the token's type, and some have a norm after the sum.
    """

    def __init__(self, config: ModelConfig, *, typed: bool = False) -> None:
        super().__init__()
        self.types = TokenTypes(config) if typed else None
        self.norm = make_norm(config) if config.embedding_norm else None
        self.positions = make_positions(config)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.max_len = config.max_len

    def forward(
        self, ids: Tensor, table: Tensor, types: Tensor | None = None, *, tap: Tap = NO_TAP, offset: int = 0
    ) -> Tensor:
        """Embed ids [B, T] of these types [B, T] with the rows of `table` [vocabulary, D] -> [B, T, D]."""
        length = ids.size(1)
        if offset + length > self.max_len:
            raise QueryError(
                "{n} token was given; this model reads at most {most}. Shorten the text.",
                "{n} tokens were given; this model reads at most {most}. Shorten the text.",
                offset + length,
                most=self.max_len,
            )
        # Scaled up, or the positions, of size 1, would drown the tokens: rows of the table have a length of about 1.
        x = tap("tokens", rows_of(table, ids) * tap.setting("scale", self.scale))  # [B, T, D]
        if self.positions is not None:  # if None, they act inside attention, or nowhere
            moves = tap.setting("moves", AS_THEY_STAND)
            x = x + tap("positions", self.positions(length, offset=offset, moves=moves))  # [T, D]
        if self.types is not None:
            x = x + tap("types", self.types(ids, types))
        if self.norm is not None:
            x = tap.setting("norm", self.norm)(tap("sum", x))
        return tap("output", self.dropout(x))


class Encoder(Module):
    """The source side."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config, typed=config.n_token_types > 0)
        self.order = StackOrder(config.of("encoder"), n_layers=config.n_encoder_layers, causal=False)
        self.layers = nn.ModuleList(EncoderLayer(config.of("encoder")) for _ in range(config.n_encoder_layers))
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()

    def forward(
        self, ids: Tensor, table: Tensor, mask: Tensor, types: Tensor | None = None, *, tap: Tap = NO_TAP
    ) -> Tensor:
        """Source ids [B, S] of these types [B, S] -> memory [B, S, D]."""
        x = self.embedding(ids, table, types, tap=tap.child("embedding"))
        orders = self.order(ids.size(1), offset=0, like=x, tap=tap.child("order"))
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, tap=tap.child(i), order=orders[i])
        return tap("output", tap.setting("final_norm", self.final_norm)(x))


class Decoder(Module):
    """The target side."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding, self.config = Embedding(config), config
        self.order = StackOrder(config.of("decoder"), n_layers=config.n_decoder_layers, causal=True)
        self.layers = nn.ModuleList(DecoderLayer(config.of("decoder")) for _ in range(config.n_decoder_layers))
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()

    def forward(
        self,
        ids: Tensor,
        table: Tensor,
        memory: Tensor | None,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        *,
        tap: Tap = NO_TAP,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Target ids [B, T] and memory [B, S, D], if there is one -> [B, T, D]."""
        length, offset = ids.size(1), cache.length if cache else 0
        x = self.embedding(ids, table, tap=tap.child("embedding"), offset=offset)
        orders = self.order(length, offset=offset, like=x, tap=tap.child("order"))
        for i, layer in enumerate(self.layers):
            caches = (cache.self_attn[i], cache.cross_attn[i]) if cache else (None, None)
            mask = within(self_mask, self.config.window(i), length, offset=offset, device=ids.device)
            x = layer(x, memory, mask, cross_mask, tap=tap.child(i), caches=caches, order=orders[i])
        if cache:
            cache.length += length
        return tap("output", tap.setting("final_norm", self.final_norm)(x))


class Transformer(Module):
    """Encoder, decoder and output layer, or those of them that the config has."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config, self.anatomy = config, anatomy(config)
        self.src_table = nn.Parameter(torch.empty(config.src_vocab_size, config.d_model))
        if not config.shared_vocab:
            self.tgt_table = nn.Parameter(torch.empty(config.tgt_vocab_size, config.d_model))
        if self.anatomy.reads:
            self.encoder = Encoder(config)
        if self.anatomy.writes:
            self.decoder = Decoder(config)
        self.mlm_head = MLMHead(config) if self.anatomy.fills else None
        if self.anatomy.gives_logits:
            if not config.tie_output:
                self.output_table = nn.Parameter(torch.empty(config.tgt_vocab_size, config.d_model))
            self.output_bias = nn.Parameter(torch.zeros(config.tgt_vocab_size)) if config.output_bias else None
        if not self.src_table.is_meta:  # made without values: `transformer.checkpoint.load` gives it those of a file
            self._initialise()

    def stack(self, name: StackName) -> Encoder | Decoder:
        """The encoder or the decoder; a QueryError if the model has no such stack."""
        return getattr(self, self.anatomy.stack(name).name)

    def attentions(self, kind: Kind) -> list[MultiHeadAttention]:
        """One kind of attention, from every layer that has it; a QueryError if the model has no such attention."""
        one = self.anatomy.attention(kind)
        return [getattr(layer, one.sublayer) for layer in self.stack(one.stack).layers]

    @property
    def device(self) -> torch.device:
        """Where the parameters are, and so where it computes: ids and vectors from elsewhere are brought there."""
        return self.src_table.device

    @property
    def target_table(self) -> Tensor:
        """The target's token embeddings [V, D]; the source's own when the vocabulary is shared."""
        return self.src_table if self.config.shared_vocab else self.tgt_table

    @property
    def output_weight(self) -> Tensor:
        """The output projection [V, D]; the target's embeddings when they are tied."""
        return self.target_table if self.config.tie_output else self.output_table

    def source_mask(self, src_ids: Tensor) -> Tensor:
        """Which source tokens may be attended to: bool [B, 1, 1, S]."""
        return padding_mask(src_ids.to(self.device), pad_id=self.config.pad_id)

    def target_mask(self, tgt_ids: Tensor, *, n_past: int = 0, tap: Tap = NO_TAP) -> Tensor:
        """Which target token may attend to which: bool [B, 1, T, T]; with a cache [1, 1, T, n_past + T], no padding."""
        causal = tap.setting("causal", causal_mask(tgt_ids.size(1), offset=n_past, device=self.device))
        if n_past:
            return causal
        padding = padding_mask(tgt_ids.to(self.device), pad_id=self.config.pad_id)
        padding[..., :1] = True  # the start id is read even where it is the padding id
        return combine_masks(causal, tap.setting("padding", padding))

    def encode(self, src_ids: Tensor, types: Tensor | None = None, *, tap: Tap = NO_TAP) -> Tensor:
        """Read the source.

        Args:
            src_ids: [B, S]; short rows are filled with `pad_id`.
            types: Each token's type [B, S], if the model has token types; None for type 0.
            tap: Sees the sites `encoder.*`.

        Returns:
            The memory [B, S, D].

        Raises:
            QueryError: More than `max_len` tokens, or the model has no encoder.
        """
        self.anatomy.stack("encoder")
        tap, src_ids = tap.child("encoder"), src_ids.to(self.device)
        types = None if types is None else types.to(self.device)
        return self.encoder(src_ids, self.src_table, tap.setting("padding", self.source_mask(src_ids)), types, tap=tap)

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        *,
        tap: Tap = NO_TAP,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Read the target so far.

        Args:
            tgt_ids: [B, T], beginning with the decoder's start id, or the prompt. With a cache: only the new tokens.
            memory: What `encode` returned [B, S, D]; None for a decoder-only model.
            src_mask: What `source_mask` returned [B, 1, 1, S]; None if nothing is padding and there is no tap.
            tap: Sees the sites `decoder.*`.
            cache: Keys and values of earlier calls; extended in place.

        Returns:
            The last layer's vectors [B, T, D]; `project` turns them into logits.

        Raises:
            QueryError: More than `max_len` tokens, or the model has no decoder.
        """
        self.anatomy.stack("decoder")
        n_past, tgt_ids = cache.length if cache else 0, tgt_ids.to(self.device)
        # A single new token sees all tokens so far: without a mask attention takes its shortest path.
        sees_all = n_past > 0 and tgt_ids.size(1) == 1 and tap is NO_TAP
        tap = tap.at(n_past).child("decoder")
        mask = None if sees_all else self.target_mask(tgt_ids, n_past=n_past, tap=tap)
        src_mask = tap.setting("source_padding", src_mask)
        return self.decoder(tgt_ids, self.target_table, memory, mask, src_mask, tap=tap, cache=cache)

    def project(self, hidden: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """The last vectors [..., D] -> logits [..., V] of the next piece, or with an MLM head of the token's own."""
        hidden = self._before_table(hidden, tap)
        logits = linear(hidden, tap.setting("output_weight", self.output_weight), self.output_bias)
        return tap("logits", capped(logits, self.config.logit_cap))

    def project_in_parts(self, hidden: Tensor, n_pieces: int, *, tap: Tap = NO_TAP) -> Iterator[Tensor]:
        """`project`, so many pieces of the vocabulary at a time; all at once if the tap wants to see the logits."""
        if tap.wants("logits"):
            yield self.project(hidden, tap=tap)
            return
        hidden, weight = self._before_table(hidden, tap), tap.setting("output_weight", self.output_weight)
        for first in range(0, len(weight), n_pieces):
            some = slice(first, first + n_pieces)
            bias = None if self.output_bias is None else self.output_bias[some]
            yield capped(linear(hidden, weight[some], bias), self.config.logit_cap)

    def _before_table(self, hidden: Tensor, tap: Tap) -> Tensor:
        """The vectors that are compared with the table of the output [..., D]."""
        hidden = hidden.to(self.device)
        if self.mlm_head is not None:
            hidden = self.mlm_head(hidden, tap=tap.child("mlm_head"))
        return hidden if self.config.output_scale == 1.0 else hidden * self.config.output_scale

    def forward(self, src_ids: Tensor, tgt_ids: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """Teacher forcing: logits after every target token, in one pass.

        Ids of a stack that the model does not have are ignored.

        Args:
            src_ids: What the encoder reads [B, S].
            tgt_ids: What the decoder reads [B, T], beginning with its start id, or with the prompt.

        Returns:
            Logits [B, T, V]; row t scores the piece that follows `tgt_ids[:, : t + 1]`. An encoder-only model returns
            its memory [B, S, D], or with an MLM head logits [B, S, V] of the piece at each token.
        """
        memory, src_mask = None, None
        if self.anatomy.reads:
            memory, src_mask = self.encode(src_ids, tap=tap), self.source_mask(src_ids)
            if not self.anatomy.writes:
                return self.project(memory, tap=tap) if self.anatomy.fills else memory
        return self.project(self.decode(tgt_ids, memory, src_mask, tap=tap), tap=tap)

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("table"):  # of embeddings or positions: rows of length about 1
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("proj.bias"):
                nn.init.zeros_(parameter)
