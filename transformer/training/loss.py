"""The loss: cross-entropy with label smoothing over the real target tokens.

Those are the target's pieces and its end; in a decoder-only model the pieces after the prompt; in an encoder-only one
the pieces that were hidden.

The logits of a whole batch are its largest tensor by far (3,000 tokens times 6,000 pieces), and cross-entropy as
torch does it reads and writes several copies of them. Here they are made for a few rows at a time; the gradient of
those rows follows at once, while they are still in the processor's cache, and they are gone before the next rows.

Source: Szegedy et al., "Rethinking the Inception Architecture" (2016), section 7; Vaswani et al. (2017), section 5.4.

Shapes: B pairs, S source tokens, T target tokens, N real target tokens, n rows of one piece of work, D d_model,
V target vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.training.data import Batch

ROWS = 512  # of logits at a time: enough for fast products, few enough for the processor's outer cache


def target_loss(model: Transformer, batch: Batch, *, smoothing: float, tap: Tap = NO_TAP) -> Tensor:
    """Mean loss a target token, in nats; the tap sees the stack that predicts.

    Padding is left out before the projection to the vocabulary, which is the dearest step of all.
    """
    hidden, targets = predicting(model, batch, tap=tap)
    hidden = hidden if model.mlm_head is None else model.mlm_head(hidden)
    return smoothed_loss(hidden, model.output_weight, model.output_bias, targets, smoothing=smoothing)


def predicting(model: Transformer, batch: Batch, *, tap: Tap = NO_TAP) -> tuple[Tensor, Tensor]:
    """The last vectors where something is to be predicted [N, D], and the pieces that are [N]."""
    parts = model.anatomy
    if parts.reads and parts.writes:
        hidden = model.decode(batch.tgt_in, model.encode(batch.src), model.source_mask(batch.src), tap=tap)
    else:
        hidden = model.decode(batch.tgt_in, tap=tap) if parts.writes else model.encode(batch.src, tap=tap)
    real = batch.tgt_out != model.config.pad_id  # [B, T]; hidden is [B, T, D]
    return hidden[real], batch.tgt_out[real]


def smoothed_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float
) -> Tensor:
    """Mean cross-entropy of softmax(hidden weight^T + bias) against smoothed targets, in nats a token.

    `hidden` is [N, D], `weight` [V, D], `bias` [V], `targets` are ids [N]. The wanted distribution has 1 - smoothing
    on the target and smoothing / V on every piece, the target included. Under autocast the products are made in its
    dtype; softmax and loss are float32 (float64 for float64 inputs). The scalar can be differentiated once, with
    respect to hidden, weight and bias.
    """
    loss: Tensor = _SmoothedLoss.apply(hidden, weight, bias, targets, smoothing)
    return loss


class _SmoothedLoss(torch.autograd.Function):
    """Computes the gradients together with the loss, `ROWS` rows at a time, and keeps them for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> Tensor:
        learning = any(ctx.needs_input_grad)
        precise = torch.promote_types(hidden.dtype, torch.float32)
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        weight_cast = weight.to(dtype)
        total = hidden.new_zeros((), dtype=precise)
        grads: list[Tensor] = []
        d_weight = torch.zeros_like(weight) if learning else None
        d_bias = torch.zeros_like(bias) if learning and bias is not None else None
        for start in range(0, len(hidden), ROWS):
            rows = hidden[start : start + ROWS].to(dtype)  # [n, D]
            wanted = targets[start : start + ROWS, None]  # [n, 1]
            logits = F.linear(rows, weight_cast, None if bias is None else bias.to(dtype)).to(precise)  # [n, V]
            probs = logits.softmax(dim=-1)
            # log p = logit - c with one c a row. The likeliest piece gives it, so no logarithm of all is needed.
            aimed = (1 - smoothing) * logits.gather(1, wanted)[:, 0] + smoothing * logits.mean(dim=-1)  # [n]
            total -= (aimed - logits.amax(dim=-1) + probs.amax(dim=-1).log()).sum()
            if d_weight is None:
                continue
            # d loss / d logits = softmax - wanted distribution; the mean's 1 / N waits for the backward pass.
            d_logits = probs.sub_(smoothing / logits.size(-1))
            d_logits.scatter_add_(1, wanted, d_logits.new_full((), smoothing - 1).expand(wanted.shape))
            d_cast = d_logits.to(dtype)
            grads.append((d_cast @ weight_cast).to(hidden.dtype))  # [n, D]
            d_weight += d_cast.t() @ rows  # [V, D]
            if d_bias is not None:
                d_bias += d_logits.sum(dim=0)
        ctx.save_for_backward(torch.cat(grads) if grads else None, d_weight, d_bias)
        return total / len(hidden)

    @staticmethod
    def backward(ctx: Any, *d_loss: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = d_loss
        d_hidden, *others = ctx.saved_tensors
        scale = scale / len(d_hidden)
        scaled = [None if grad is None else grad * scale for grad in (d_hidden, *others)]
        return (*scaled, None, None)
