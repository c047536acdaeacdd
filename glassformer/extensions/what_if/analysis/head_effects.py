"""The effect of each head on a run: how the output's probabilities change when only that head writes nothing.

Every head is set to 0 in turn while the model reads the finished output (teacher forcing). Nothing is decoded again,
so every step compares the same pieces. Many heads are measured in one pass, as rows of a batch
(`extensions.what_if.analysis.head_passes`).

It says what the output owes to a head while all other heads are present. If two heads can replace each other, neither
seems to matter; and the layers above were never trained on a head that writes nothing.

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3 for heads set to 0 and section
3.2 for one at a time. McGrath et al., "The Hydra Effect" (2023), for layers that compensate for a removed one.

Shapes: L layers, H heads, T steps, S source tokens.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from glassformer.extensions.what_if.analysis.head_passes import Head, Reading, Rows
from transformer.model.anatomy import Kind, StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.results import Arrays, Progress, whole
from transformer.runs.runnable import Runnable
from transformer.runs.trace import Trace

MOST_VALUES = 2**24  # of the largest array inside one pass, 64 MB in float32
TOKENS = 256  # of all rows of a pass: from there on a matrix is used often enough to be worth fetching


@dataclass(frozen=True, eq=False)
class Effect(Arrays):
    """The effect of zeroing each head of one attention."""

    # Change of the log-probability of each step's piece, in nats [L, H, T]; below 0 the piece loses.
    log_prob: np.ndarray
    probability: np.ndarray  # change of its probability [L, H, T]
    kl: np.ndarray  # how far the distribution of the next piece moves, KL(before, after) in nats [L, H, T]
    best: np.ndarray  # the id that is then most probable [L, H, T]
    # Of an encoder alone, how far each token's final vector moves, as a share of its length [L, H, S]; else [L, H,
    # 0].
    vectors: np.ndarray


@dataclass(frozen=True, eq=False)
class HeadEffects(Arrays):
    """The effects of all heads on one run."""

    of: Mapping[Kind, Effect]  # by attention, in the order of the computation
    ids: np.ndarray  # the pieces whose probabilities are measured, one a step [T]
    log_prob: np.ndarray  # their log-probabilities with every head in place, in nats [T]
    best: np.ndarray  # the most probable ids then [T]

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", MappingProxyType(dict(self.of)))
        super().__post_init__()

    def changed(self, kind: Kind) -> np.ndarray:
        """Whether another piece then becomes the most probable, bool [L, H, T]."""
        return np.asarray(self.of[kind].best != self.best)


def head_effects(
    checkpoint: Runnable, trace: Trace, *, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP
) -> HeadEffects:
    """Measure the effect of each head on a run, with the run's own interventions always applied.

    `hidden` is for an encoder-only model with an MLM head: a token, from 0, and the id of the mask piece that
    replaces it; the only step is then the piece that was there. Without it, only an encoder's vectors are compared.
    `tap` is the tap that the run had besides its query. The effects equal those of one pass per head, up to rounding.
    A QueryError says that the trace is of another checkpoint, or that the token cannot be hidden.
    """
    return whole(measuring(checkpoint, trace, hidden=hidden, tap=tap))


def measuring(
    checkpoint: Runnable, trace: Trace, *, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP
) -> Generator[Progress, None, HeadEffects]:
    """`head_effects` pass by pass: yields before each how many heads are done, so a caller may stop at any point."""
    reading = Reading.of(checkpoint, trace, hidden, tap)
    groups = list(together(reading.config, reading.src_ids.size(1), reading.read_ids.size(1)))
    n_heads, done = sum(map(len, groups)), 0
    yield Progress(done, n_heads)
    control = reading.control()
    found: dict[Kind, dict[str, np.ndarray]] = {}
    for group in groups:
        yield Progress(done, n_heads)
        _put(found, group, reading.without(group, control), reading.config)
        done += len(group)
    return HeadEffects(
        of={kind: Effect(**found[kind]) for kind in anatomy(checkpoint.config).kinds},
        ids=reading.ids.numpy(force=True),
        log_prob=control.chosen.numpy(force=True),
        best=control.best.numpy(force=True),
    )


def _put(found: dict[Kind, dict[str, np.ndarray]], group: list[Head], rows: Rows, config: ModelConfig) -> None:
    """Put each row of a pass into the place of its head [L, H, ...]."""
    for name, result in rows.items():
        values = result.numpy(force=True)  # [R, T] or [R, S]
        for value, one in zip(values, group, strict=True):
            attention = anatomy(config).attention(one.kind)
            shape = (attention.n_layers, config.of(attention.stack).n_heads, *value.shape)
            arrays = found.setdefault(one.kind, {})
            if name not in arrays:
                arrays[name] = np.empty(shape, values.dtype)
            arrays[name][one.layer, one.head] = value


def together(config: ModelConfig, n_source: int, n_target: int) -> Iterator[list[Head]]:
    """Which heads are measured in one pass, in the order of the computation; never heads of both stacks.

    More rows use each matrix more often. But rows differ from their first zeroed head on, so more is computed in many
    rows. So there are enough rows to fill a pass with tokens, and no more than memory allows.
    """
    longest = max(n_source, n_target)
    for stack in anatomy(config).stacks:
        own = config.of(stack.name)
        widest = longest * max(3 * own.d_model, 2 * own.d_ff, own.n_heads * longest)  # values of a row
        most = max(1, MOST_VALUES // widest)
        group: list[Head] = []
        for one in _heads(config, stack.name):
            is_enough = one.head == 0 and len(group) * (n_target or n_source) >= TOKENS
            if group and (is_enough or len(group) >= most):
                yield group
                group = []
            group.append(one)
        yield group


def _heads(config: ModelConfig, stack: StackName) -> Iterator[Head]:
    """The heads of a stack, in the order of the computation."""
    attentions = [attention for attention in anatomy(config).attentions if attention.stack == stack]
    for layer in range(attentions[0].n_layers):
        for attention in attentions:
            yield from (Head(attention.kind, layer, head) for head in range(config.of(stack).n_heads))
