"""Direct contributions to a logit: what each head, feed-forward layer, bias and embedding adds to it directly.

The stream at a token is a sum, and a logit is its product with the piece's row of the output table. So each part of the
sum has a share of the logit: the product with what has become of it on the way, past norms whose sizes are held
(`held_run`). In a pre-norm model there is only the final norm. In a post-norm model each norm rescales everything that
was added before it. In a model without residuals only the last sub-layer adds anything; everything else goes through
it.

All contributions add up to the logit. The remainder is rounding, and the effect of a cap of the logits, if any, which
is not linear. A value that a change replaced is a separate part.

Indirect paths are not shown. Later layers also read a part's output, so a part with a contribution of 0 may still
decide the output, and the encoder acts only through cross-attention. `attribution_graph` has them.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section "Transformer Overview" for
the stream as a sum, and "Handling Layer Normalization"; nostalgebraist (2020) for reading a stream by the output table.

Shapes: C pieces whose logits are explained, P parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart, reads
from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.runs.array_records import ArrayRecord


@dataclass(frozen=True, eq=False)
class Contributions(ArrayRecord):
    """The parts of one step's logits."""

    pieces: tuple[int, ...]  # whose logits, ids [C]
    parts: tuple[LogitPart, ...]  # in the order of the computation [P]
    values: np.ndarray  # what each part adds [C, P]
    logits: np.ndarray  # as the model computed them [C]
    # The exact sum of the parts, from the model's own last vector [C]; the logits themselves without a cap.
    before_cap: np.ndarray

    @property
    def remainder(self) -> np.ndarray:
        """The logits minus the sums of their parts [C]."""
        return np.asarray(self.logits - self.values.sum(axis=1))

    @property
    def capped(self) -> np.ndarray:
        """The part of the remainder that the cap took off the logits [C]; 0 without a cap."""
        return np.asarray(self.logits - self.before_cap)


@torch.inference_mode()
def contributions(asked: AttributionTarget, pieces: Sequence[int] = ()) -> Contributions:
    """The parts of a step's logits, for its own piece and others; a difference has the differences of parts."""
    ids = (asked.piece, *pieces)
    held = HeldRun(asked, last=True)
    *_, (_, last, _) = reads(held)
    directions, bias = held.output(ids)
    parts, values = last.parts, directions @ last.rows[:, 0].T  # [C, P]
    before_cap = directions @ held.value("decoder.output")[0] + bias
    if held.model.output_bias is not None:
        parts, values = (*parts, LogitPart("output_bias")), torch.cat((values, bias[:, None]), dim=1)
    logits = held.logits[list(ids)]
    before_cap = logits if held.model.config.logit_cap is None else before_cap
    return Contributions(ids, parts, values.numpy(), logits.numpy(), before_cap.numpy())
