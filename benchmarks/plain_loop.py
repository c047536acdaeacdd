"""The peer of our trainer: torch's own Transformer in a plain training loop, as a competent person would write it.

It uses nothing of our trainer: torch's layers, dropout, loss, AdamW and allocator, each with torch's defaults. The
target's padding needs no mask, because it comes after everything that is learned from. tests/benchmarks/ gives it the
parameters of one of our models, and both compute the same loss.

The difference from our model: torch's layers also drop attention weights and values inside the feed-forward layer.

Shapes: B pairs, S source tokens, T target tokens, D d_model, V target vocabulary.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.extensions.training.library.data import Batch
from transformer.model.config import ModelConfig
from transformer.model.positions import sinusoidal_table


class PlainTransformer(nn.Module):
    """Embeddings with sinusoids, torch's Transformer (pre-norm), and an output that is tied to the target's table.

    Args:
        config: The features of our model; those that torch's layers cannot have are not asked for.
    """

    positions: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.src_embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, config.d_model)
        for embedding in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("positions", sinusoidal_table(config.max_len, config.d_model), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="enable_nested_tensor")  # a path of torch's for evaluation
            sizes = (config.d_model, config.n_heads, config.n_encoder_layers, config.n_decoder_layers, config.d_ff)
            self.transformer = nn.Transformer(*sizes, dropout=config.dropout, batch_first=True, norm_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Source ids [B, S] and target ids [B, T] -> logits [B, T, V]."""
        padding = src == self.config.pad_id  # [B, S], True = hidden: torch's sign
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(diagonal=1)
        hidden = self.transformer(
            self._embed(src, self.src_embedding),
            self._embed(tgt, self.tgt_embedding),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.tgt_embedding.weight)

    def _embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        return self.dropout(embedding(ids) * self.config.d_model**0.5 + self.positions[: ids.size(1)])


class PlainTrainer:
    """The plain loop's step: autocast, cross-entropy, clip, AdamW.

    Args:
        model: The peer.
        bf16: Autocast to bfloat16.
    """

    smoothing, clip = 0.1, 1.0

    def __init__(self, model: PlainTransformer, *, bf16: bool) -> None:
        self.model = model.train()
        self.bf16 = bf16
        self.optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), eps=1e-9)

    def step(self, batch: Batch, rate: float) -> float:
        """Learn from one batch; the loss before that, in nats a real target token."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        with torch.autocast(batch.src.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.model(batch.src, batch.tgt_in)  # [B, T, V]
            loss = F.cross_entropy(
                logits.flatten(0, 1),
                batch.tgt_out.flatten(),
                ignore_index=self.model.config.fill_id,
                label_smoothing=self.smoothing,
            )
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss.item()
