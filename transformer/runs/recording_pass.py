"""Recording pass: a finished output read once more, activations recorded, values that are not finite found.

**One pass shows every step.** Under a causal mask, what a decoder computes for a token depends on no later token. So
row t of a single teacher-forced pass over the whole output is what the step with t + 1 tokens saw.

A tap may break that: values averaged over tokens, or a mask that was removed, change with every further token. Then
each prefix is read alone, as in decoding, and only its last row, which wrote the piece, is kept. This holds for maps,
replay, comparisons, tables and saved files, and a note of the trace says so (`trace.BY_STEPS`). A row of a prompt is
read in the same way, as if the prompt ended there; its map leaves later tokens closed.

**Recorded values are finite**, or an error names the first site that is not. Checking every value would cost as much as
the model itself, so only the end of a pass is checked: what was recorded, or the logits. If that is not finite, the
pass is repeated and every site is checked, in the order of the computation. A tap may put in infinite values on
purpose: -inf closes a score. Such a value is not counted, but what the model computes from it is.

Shapes: B batch rows, S source tokens, T target tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.errors import NotFiniteError
from transformer.model.taps import NO_TAP, Observer, Recorder, Tap, both, tap_of

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

Pass = Callable[[Tap], object]
"""Makes a pass of the model with a tap."""


def check_recorded(values: Iterable[Tensor], again: Pass, *, tap: Tap) -> None:
    """Refuse a pass, made with this tap, in which the model computed a value that is not finite.

    If a recorded value is not finite, the pass is repeated; the NotFiniteError names the first site where the model,
    not the tap, caused it.
    """
    if not all(_is_finite(value) for value in values):
        site = first_site(again, tap=tap)
        if site is not None:
            raise not_finite(site, tap=tap)


def first_site(again: Pass, *, tap: Tap) -> str | None:
    """The first site where the model computes a value that is not finite; None if only the tap put it there."""
    found, suspect = list[str](), torch.tensor(False)

    def search(site: str, value: Tensor) -> None:  # before the taps: what the model computed
        nonlocal suspect
        suspect = ~value.isfinite()

    def confirm(site: str, value: Tensor) -> None:  # after the taps: what they mended goes no further
        if bool((suspect & ~value.isfinite()).any()):
            found.append(site)

    again(both(tap_of(Observer(["*"], search)), tap).also(Observer(["*"], confirm)))
    return found[0] if found else None


def not_finite(site: str, *, tap: Tap = NO_TAP) -> NotFiniteError:
    """The error for a site, in a pass with this tap."""
    if any(not isinstance(visitor, Observer) for visitor in tap.visitors):
        return NotFiniteError(
            "With its changes, this model computes NaN (not a number) or an infinite value at {site}, and this "
            "spreads to everything computed from it. Undo the changes.",
            site=site,
        )
    return NotFiniteError(
        "At {site} this model computes NaN (not a number) or an infinite value: its parameters are damaged or far "
        "too large. Choose another checkpoint.",
        site=site,
    )


def _is_finite(value: Tensor) -> bool:
    if not value.is_floating_point():
        return True
    # A sum is the cheapest check of all values; only one that overflows needs a second check.
    return math.isfinite(value.sum()) or bool(value.isfinite().all())


HEAD = ("mlm_head.pre_activation", "mlm_head.activation", "mlm_head.output", "logits")
"""What an encoder-only model computes after its memory, if it has an MLM head: only on request."""


def read_source(
    model: Transformer, src_ids: Tensor, patterns: Iterable[str], *, passed: Sequence[str] = (), tap: Tap
) -> tuple[Tensor | None, dict[str, Tensor]]:
    """Read the source and record: the memory [B, S, D] and values by site; nothing without an encoder.

    Sites in `passed` are computed as if recorded, checked to be finite, and dropped. A QueryError says that the
    memory or a recorded value is not finite.
    """
    if not model.anatomy.reads:
        return None, {}
    recorder, sums = Recorder(patterns), list[Tensor]()
    fills = model.anatomy.fills and any(recorder.wants(site) for site in HEAD)

    def read(seen: Tap) -> Tensor:
        memory = model.encode(src_ids, tap=seen)
        if fills:
            model.project(memory, tap=seen)
        return memory

    memory = read(tap.also(recorder, *_passing(passed, sums)))
    check_recorded((memory, *recorder.values.values(), *sums), read, tap=tap)
    return memory, recorder.values


def read_target(
    model: Transformer,
    read_ids: Tensor,
    memory: Tensor | None,
    src_mask: Tensor | None,
    patterns: Iterable[str],
    *,
    passed: Sequence[str] = (),
    tap: Tap,
) -> dict[str, Tensor]:
    """Read an output [B, T] with the tap that it was decoded with, and record; nothing without a decoder.

    Row t of each value is what the step with t + 1 tokens saw. Memory and mask are those of `Transformer.decode`; the
    rest is as in `read_source`.
    """
    if not model.anatomy.writes:
        return {}
    n_tokens = read_ids.size(1)
    lengths = (n_tokens,) if tap.causal else range(1, n_tokens + 1)

    def read(seen: Tap) -> None:
        needs_logits = seen.wants("logits")  # with a large vocabulary a third of the work
        for length in lengths:
            hidden = model.decode(read_ids[:, :length], memory, src_mask, tap=seen)
            if needs_logits:
                model.project(hidden, tap=seen)

    recorder = Recorder(patterns) if tap.causal else _LastRows(patterns)
    sums: list[Tensor] = []
    read(tap.also(recorder, *_passing(passed, sums)))
    values = recorder.stacked() if isinstance(recorder, _LastRows) else recorder.values
    check_recorded((*values.values(), *sums), read, tap=tap)
    return values


def alone(site: str, value: Tensor) -> np.ndarray:
    """The value of the only run in a batch, read-only; position vectors have no batch axis."""
    own: np.ndarray = (value if site.endswith("embedding.positions") else value[0]).numpy(force=True)
    own.flags.writeable = False
    return own


def _passing(passed: Sequence[str], sums: list[Tensor]) -> list[Observer]:
    """Has values computed, and keeps of each only its sum, which says whether all of it is finite."""
    return [Observer(passed, lambda site, value: sums.append(value.sum()))] if passed else []


class _LastRows(Recorder):
    """Keeps what each of several prefixes computed for its last token."""

    def __init__(self, patterns: Iterable[str]) -> None:
        super().__init__(patterns)
        self._rows: dict[str, list[Tensor]] = {}

    def keep(self, site: str, value: Tensor) -> None:
        """Keep the last row; all of what belongs to the source, which has no more tokens than before."""
        whole = site.endswith(("cross_attn.keys", "cross_attn.values"))
        self._rows.setdefault(site, []).append((value if whole else value[..., -1:, :]).detach().cpu())
        if whole:
            del self._rows[site][:-1]

    def stacked(self) -> dict[str, Tensor]:
        """Values by site, the rows below each other; keys that a row had not read yet are 0, or closed in a mask."""
        return {
            site: torch.cat([F.pad(row, (0, rows[-1].size(-1) - row.size(-1))) for row in rows], -2)
            for site, rows in self._rows.items()
        }
