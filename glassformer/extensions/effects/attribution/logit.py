"""Direct contributions to a logit: what each head, feed-forward layer, bias and embedding adds to it directly.

The stream at a token is a sum, and a logit is its product with the piece's row of the output table. So each part of
the sum has a share of the logit. Between the two are norms. A norm divides by a size that depends on the whole sum;
with that size held at its value in this run, a norm is linear, too:

    y = γ (x - centre(x)) / size + β,    u . y = (J u) . x + u . β    with J u = w - centre(w), w = γ u / size

The direction u in which the stream is read is carried backwards in this way, from the output to the embedding; a
part's contribution is its product with the direction at the place where it is added. In a pre-norm model there is
only the final norm. In a post-norm model each norm rescales everything that was added before it. In a model without
residuals only the last sub-layer adds anything; everything else goes through it.

All contributions add up to the logit. The remainder is rounding, and the effect of a cap of the logits, which is not
linear, if the model has one. If a change replaced a value, the replacement is a separate part.

What they do not show: indirect paths. Later layers also read what a part writes and act on it. So a part with a
contribution of 0 may still decide the output, and the encoder acts only through cross-attention.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section "Transformer Overview" for
the stream as a sum, and "Handling Layer Normalization"; nostalgebraist (2020) for reading a stream by the output
table.

Shapes: C pieces whose logits are looked at, P parts, D d_model, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.asked import Asked
from glassformer.extensions.effects.attribution.parts import Contributions, Part
from glassformer.extensions.effects.attribution.way_back import Reading, walk_back
from transformer.model.linear import widened
from transformer.model.taps import Onlooker

_NAMES = ("tokens", "positions", "sum", "output", "heads", "activation", "output_norm", "residual", "norm")
_NEEDED = ("logits", *(f"decoder*.{name}" for name in _NAMES))


@torch.inference_mode()
def contributions(asked: Asked, pieces: Sequence[int] = ()) -> Contributions:
    """The parts of a step's logits, for its own piece and others; a difference has the differences of parts."""
    model, ids = asked.model, (asked.piece, *pieces)
    seen: dict[str, Tensor] = {}  # the last token's row of each site, in float64

    def keep(site: str, value: Tensor) -> None:
        rows = value if site.endswith("embedding.positions") else value[0]
        seen[site] = rows[..., -1, :].cpu().double()

    asked.logits(tap=asked.tap.also(Onlooker(_NEEDED, keep)))
    table = widened(asked.tap.setting("output_weight", model.output_weight)[list(ids)]).cpu().double()  # [C, D]
    reading = Reading(model, asked.tap, seen, table * model.config.output_scale)
    before_cap = reading.direction @ seen["decoder.output"]
    if model.output_bias is not None:
        bias = widened(model.output_bias)[list(ids)].cpu().double()
        reading.found.append((Part("output_bias"), bias))
        before_cap = before_cap + bias
    walk_back(reading)
    parts, values = zip(*reversed(reading.found), strict=True)
    logits = seen["logits"][list(ids)]
    before_cap = logits if model.config.logit_cap is None else before_cap
    return Contributions(ids, parts, torch.stack(values, dim=1).numpy(), logits.numpy(), before_cap.numpy())
