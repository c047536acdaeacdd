"""Path patching: what cutting one edge of an attribution graph truly does to a step, with nothing held.

Two passes of the model. In the first, every sub-layer writes what it wrote in the run, except that what the source
wrote is taken away at its token: so the loss goes to the target along the residual stream alone. Norms measure anew,
and the target computes for itself with what is left, a head its query, key and value, too. The second pass is the run,
with what the target computed then in the place of what it wrote at its token; all that comes later follows.

Source: Wang et al., "Interpretability in the Wild" (2023), section 3.1; Goldowsky-Dill et al., "Localizing Model
Behavior with Path Patching" (2023).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart
from transformer.errors import QueryError
from transformer.model.taps import Recorder, Replacer
from transformer.runs.array_records import ArrayRecord


@dataclass(frozen=True, eq=False)
class Cut(ArrayRecord):
    """The logits before and after an edge is cut."""

    before: np.ndarray  # [V]
    after: np.ndarray  # [V]

    def change(self, piece: int, rival: int | None = None) -> float:
        """The true effect on the logit of a piece, minus that of a rival."""
        change = self.after - self.before
        return float(change[piece] - (0.0 if rival is None else change[rival]))

    def probabilities(self, piece: int) -> tuple[float, float]:
        """The probability of a piece before and after."""
        before, after = (float(torch.tensor(one).softmax(dim=0)[piece]) for one in (self.before, self.after))
        return before, after


@torch.inference_mode()
def cut(held: HeldRun, source: tuple[LogitPart, int], target: tuple[LogitPart, int]) -> Cut:
    """Cut the edge from a source to a target, each a part at a token; a QueryError if the source is the biases."""
    (writer, token), (reader, at) = source, target
    if writer.kind == "bias":
        raise QueryError(
            "biases are added in many places at once, so an edge from them cannot be cut; choose another edge."
        )
    written = {f"{one.map.near.place}.output" for some in held.sublayers.values() for one in some} - {
        f"{reader.place}.output"
    }
    changes = {site: _kept(held.seen[site]) for site in written}
    if writer.layer is None:
        site = f"{writer.stack}.embedding.{writer.kind}"
        changes[site] = _kept(_without(held.seen[site], token, held.seen[site][..., token, :]))
    else:
        one = next(one.map for one in held.sublayers[writer.stack or "encoder"] if writer in one.map.writers)
        site, lost = f"{writer.place}.output", one.written[one.writers.index(writer), token]
        changes[site] = _kept(_without(held.seen[site], token, lost))
    site = f"{reader.place}.{'heads' if reader.kind == 'head' else 'output'}"
    recorder, tap = Recorder([site]), held.asked.tap
    logits = held.asked.logits(tap=tap.also(Replacer(changes), recorder))
    if reader.kind != "logit":
        where = (0, at) if reader.head is None else (0, reader.head, at)

        def patch(value: Tensor) -> Tensor:
            patched = value.clone()
            patched[where] = recorder.values[site][where].to(value)
            return patched

        logits = held.asked.logits(tap=tap.also(Replacer({site: patch})))
    return Cut(held.logits.numpy(), logits[0].cpu().double().numpy())


def _kept(was: Tensor) -> Callable[[Tensor], Tensor]:
    """Puts what a site had in the run in the place of what it has."""
    return lambda computed: was.to(computed)


def _without(was: Tensor, token: int, lost: Tensor) -> Tensor:
    rest = was.clone()
    rest[..., token, :] -= lost.to(was)
    return rest
