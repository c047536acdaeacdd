"""Read a finished output once more and record what happens.

**One pass shows every step.** Under a causal mask, what a decoder computes for a token depends on no later token. So
row t of a single teacher-forced pass over the whole output is what the step with t + 1 tokens saw.

A tap may break that: values averaged over tokens, or a mask that was removed, change with every further token. Then
each prefix is read alone, as in decoding, and only its last row is kept: that row wrote the piece, and no step ran
one pass over the whole output. This holds for maps, replay, comparisons, tables and saved files, and a note of the
trace says so (`record.BY_STEPS`). A row of a prompt is read in the same way, as if the prompt ended there; its map
leaves later tokens closed.

Recorded values are finite, or an error names the first site that is not (see `transformer.runs.finite`).

Shapes: B batch rows, S source tokens, T target tokens.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.taps import Onlooker, Recorder, Tap
from transformer.model.transformer import Transformer
from transformer.runs.finite import check_recorded

HEAD = ("mlm_head.pre_activation", "mlm_head.activation", "mlm_head.output", "logits")
"""What an encoder alone computes after its memory, if it has an MLM head: made only where somebody wants it."""


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
    """The value of the only run in a batch; position vectors have no batch axis."""
    return (value if site.endswith("embedding.positions") else value[0]).numpy()


def _passing(passed: Sequence[str], sums: list[Tensor]) -> list[Onlooker]:
    """Has values computed, and keeps of each only its sum, which says whether all of it is finite."""
    return [Onlooker(passed, lambda site, value: sums.append(value.sum()))] if passed else []


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
