"""The loss: cross-entropy with label smoothing over the real target tokens.

Source: Szegedy et al., "Rethinking the Inception Architecture" (2016), section 7; Vaswani et al. (2017), section 5.4.

Shapes: B pairs, S source tokens, T target tokens, N real target tokens, D d_model, V target vocabulary.
"""

import torch.nn.functional as F
from torch import Tensor

from transformer.model import Transformer
from transformer.training.data import Batch


def target_loss(model: Transformer, batch: Batch, *, smoothing: float) -> Tensor:
    """Mean loss a target token, in nats.

    Padding is left out before the projection to the vocabulary, which is the dearest step of all.
    """
    memory = model.encode(batch.src)
    hidden = model.decode(batch.tgt_in, memory, model.source_mask(batch.src))  # [B, T, D]
    real = batch.tgt_out != model.config.pad_id  # [B, T]
    logits = model.project(hidden[real])  # [N, V]
    return F.cross_entropy(logits.float(), batch.tgt_out[real], label_smoothing=smoothing)
