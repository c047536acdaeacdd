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

from glassformer.extensions.training.library.data import Batch
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer

ROWS = 512  # of logits at a time: enough for fast products, few enough for the processor's outer cache
ROWS_ON_GPU = 8192  # which is quick with many at once


def target_loss(model: Transformer, batch: Batch, *, smoothing: float, tap: Tap = NO_TAP) -> Tensor:
    """Mean loss a target token, in nats; the tap sees the stack that predicts.

    Padding is left out before the projection to the vocabulary, which is the dearest step of all. A GPU projects it,
    too, as it would have to wait to be told how many rows there are; it weighs nothing.
    """
    hidden, targets, real = predicting(model, batch, tap=tap)
    counted = real.flatten() if hidden.is_cuda else None
    if counted is None:
        hidden, targets = hidden[real], targets[real]
    hidden, targets = hidden.flatten(end_dim=-2), targets.flatten()
    hidden = hidden if model.mlm_head is None else model.mlm_head(hidden)
    weight, bias = model.output_weight, model.output_bias
    return smoothed_loss(hidden, weight, bias, targets, smoothing=smoothing, counted=counted)


def predicting(model: Transformer, batch: Batch, *, tap: Tap = NO_TAP) -> tuple[Tensor, Tensor, Tensor]:
    """The last vectors [B, T, D], the pieces to be predicted [B, T], and where there is one, bool [B, T]."""
    parts = model.anatomy
    if parts.reads and parts.writes:
        hidden = model.decode(batch.tgt_in, model.encode(batch.src), model.source_mask(batch.src), tap=tap)
    else:
        hidden = model.decode(batch.tgt_in, tap=tap) if parts.writes else model.encode(batch.src, tap=tap)
    return hidden, batch.tgt_out, batch.tgt_out.ne(model.config.fill_id)


def smoothed_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float,
    counted: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy of softmax(hidden weight^T + bias) against smoothed targets, in nats a token.

    `hidden` is [N, D], `weight` [V, D], `bias` [V], `targets` are ids [N]. The wanted distribution has 1 - smoothing
    on the target and smoothing / V on every piece, the target included. Rows that are not `counted`, bool [N], are
    left out of the mean. Under autocast the products are made in its dtype; softmax and loss are float32 (float64 for
    float64 inputs). The scalar can be differentiated once, with respect to hidden, weight and bias.
    """
    loss: Tensor = _SmoothedLoss.apply(hidden, weight, bias, targets, smoothing, counted)
    return loss


class _SmoothedLoss(torch.autograd.Function):
    """Computes the gradients together with the loss, `ROWS` rows at a time, and keeps them for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        counted: Tensor | None,
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
        n_rows = ROWS_ON_GPU if hidden.is_cuda else ROWS
        for start in range(0, len(hidden), n_rows):
            part = slice(start, start + n_rows)
            rows, wanted = hidden[part].to(dtype), targets[part, None]  # [n, D], [n, 1]
            logits = F.linear(rows, weight_cast, None if bias is None else bias.to(dtype)).to(precise)  # [n, V]
            probs = logits.softmax(dim=-1)
            # log p = logit - c with one c a row. The likeliest piece gives it, so no logarithm of all is needed.
            aimed = (1 - smoothing) * logits.gather(1, wanted)[:, 0] + smoothing * logits.mean(dim=-1)  # [n]
            gained = aimed - logits.amax(dim=-1) + probs.amax(dim=-1).log()
            total -= (gained if counted is None else gained * counted[part]).sum()
            if d_weight is None:
                continue
            # d loss / d logits = softmax - wanted distribution; the mean's 1 / N waits for the backward pass.
            d_logits = probs.sub_(smoothing / logits.size(-1))
            d_logits.scatter_add_(1, wanted, d_logits.new_full((), smoothing - 1).expand(wanted.shape))
            if counted is not None:
                d_logits *= counted[part, None]
            d_cast = d_logits.to(dtype)
            grads.append((d_cast @ weight_cast).to(hidden.dtype))  # [n, D]
            d_weight += d_cast.t() @ rows  # [V, D]
            if d_bias is not None:
                d_bias += d_logits.sum(dim=0)
        ctx.save_for_backward(torch.cat(grads) if grads else None, d_weight, d_bias)
        ctx.n_tokens = len(hidden) if counted is None else counted.sum()
        return total / ctx.n_tokens

    @staticmethod
    def backward(ctx: Any, *d_loss: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = d_loss
        scale = scale / ctx.n_tokens
        scaled = [None if grad is None else grad * scale for grad in ctx.saved_tensors]
        return (*scaled, None, None, None)
