"""Search for the code mistake that explains pairs: loss under each one and likely two, verdict; match by logits.

A model that was trained with a mistake in its code is right under that mistake: its loss on its own pairs is low when
a run makes the same mistake, and far off otherwise.

    few pairs    every mistake alone; if none explains them, the best with every other one, as long as there is time
    all pairs    the best of these
    verdict      the wiring as it stands, a mistake of the catalogue, or nothing that is known

With the author's own forward pass logits decide: the wiring whose logits equal theirs is the code (`matching`).
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from torch import Tensor

from glassformer.extensions.wirings.catalogue import AS_IT_IS, Variant, catalogue, in_a_batch
from glassformer.extensions.wirings.readings import PairBatch, PairIds, Reading, batches, losses_of_batches, vectors_of
from transformer.analysis.losses import Loss, Variants
from transformer.analysis.significance import same, surely_better
from transformer.errors import ConfigError, QueryError
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs.apply_interventions import tap_for
from transformer.runs.query import Runnable

FEW: Final = 12  # pairs of the first look
FINAL: Final = 16  # wirings whose loss on all pairs is computed
STARTS: Final = 6  # wirings that are tried with every other one
FEWEST: Final = 3  # pairs; the paired test shows nothing on fewer
GAIN: Final = 0.05
"""Nats a token by which a wiring has to be better than the one that stands."""
EASY: Final = 1.0
"""Nats a token up to which a model plainly works. Above, any change may be better by chance: there a wiring counts only
if it explains half of the rest."""
KNOWN: Final = 0.25
"""Share of the loss of guessing below which a model is one that was trained for such pairs."""
SURE: Final = 0.05
SURE_OF_TWO: Final = 0.02
"""The same under a wiring that explains pairs whatever others do: one mistake, or two, of which there are thousands."""
HINT: Final = 0.1
"""Share of the loss of guessing that has to be gained, unless hardly any loss is left: a little helps by chance."""
MOST: Final = 0.5
APART: Final = 0.15
"""Up to the first share of the loss of guessing, one mistake is named too if every wiring that has nothing in common
with it leaves more by the second."""
COPIED: Final = 0.03
"""Share that may be left where a model reads what it has to predict: with tied tables a wrong one nearly copies it."""
CLOSE: Final = 0.02
"""Nats a token within which two wirings explain pairs equally well."""
UNREADABLE: Final = 1e6  # the loss of a model that cannot read the pairs
SECONDS: Final = 12.0  # for two mistakes at once
MOST_SECONDS: Final = 60.0
"""For one mistake alone, the likeliest first: a pass of a large model takes seconds."""

Verdict = Literal["as_it_stands", "another", "unexplained", "untested"]


@dataclass(frozen=True)
class Tried:
    """One wiring and its loss."""

    variant: Variant
    plain: Loss  # as it is
    loss: Loss  # at the sharpness with the least of all pairs: what wirings are compared by

    @property
    def names(self) -> tuple[str, ...]:
        """Of its mistakes; none for the wiring as it stands."""
        return self.variant.names


@dataclass(frozen=True)
class SearchResult:
    """What the search found."""

    verdict: Verdict
    standing: Tried | None  # the wiring as it stands, its loss `UNREADABLE` if it cannot read them; None if nothing can
    best: Tried | None  # the best other wiring, on all pairs
    equal: tuple[Tried, ...]  # others that explain the pairs as well as what the verdict names: each mistake once
    n_tried: int
    n_pairs: int
    chance: float  # the loss of guessing
    seconds: float
    whole: bool = True  # whether there was time for all that should have been tried

    @property
    def margin(self) -> float:
        """Nats a token by which the best other wiring is better than the one that stands."""
        return 0.0 if self.standing is None or self.best is None else self.standing.loss.mean - self.best.loss.mean


NOTHING: Final = SearchResult("untested", None, None, (), 0, 0, 0.0, 0.0)


class WiringSearch:
    """A search in one model, whose losses are kept."""

    def __init__(
        self, checkpoint: Runnable, pairs: Sequence[PairIds], *, pause: Callable[[], None] = lambda: None,
        seconds: float = SECONDS, most_mistakes: int = 2,
    ) -> None:  # fmt: skip
        self._checkpoint, self._pairs, self._pause = checkpoint, tuple(pairs), pause
        self._seconds, self._most, self._begun = seconds, most_mistakes, time.perf_counter()
        self._found: dict[tuple[Variant, int], Tried | None] = {}
        self._ready: dict[tuple[Reading, int], list[PairBatch]] = {}
        self._variants, self._whole = Variants(checkpoint), True

    def tried(self, variant: Variant, n: int) -> Tried | None:
        """A wiring on the first so many pairs; None where it makes no sense, or its numbers are not finite."""
        if (variant, n) not in self._found:
            self._pause()
            self._found[variant, n] = self._tried(variant, n)
        return self._found[variant, n]

    def _tried(self, variant: Variant, n: int) -> Tried | None:
        key = variant.reading, n
        try:
            model, tap = self.wired(variant)
            if key not in self._ready:  # once for all wirings that read pairs alike: no answer is an id
                self._ready[key] = batches(self._checkpoint.config, self._pairs, variant.reading, first=n)
            losses = losses_of_batches(model, self._ready[key], n, tap, self._pause)
        except (ConfigError, QueryError, RuntimeError, IndexError):
            return None
        finite = all(map(math.isfinite, losses[0].totals))
        return Tried(variant, losses[0], min(losses, key=lambda one: one.mean)) if finite else None

    def wired(self, variant: Variant) -> tuple[Transformer, Callable[[], Tap]]:
        """The model of a wiring, and what makes a tap for a pass."""
        if not variant.answers:
            return self._checkpoint.model, partial(tap_for, variant.changes, self._checkpoint)
        found = self._variants.get(dict(variant.answers))
        if found is None:
            raise QueryError("This model has other parameters.")
        return found.model, lambda: NO_TAP

    def run(self) -> SearchResult:
        """Search until the pairs are explained or the time is up."""
        pairs, config = self._pairs, self._checkpoint.config
        chance = math.log(config.tgt_vocab_size)
        n, few = len(pairs), min(FEW, len(pairs))
        standing = self.tried(AS_IT_IS, n)
        if n < FEWEST:
            return replace(NOTHING, n_pairs=n, chance=chance)
        if standing is None:  # it cannot read them at all
            nothing = Loss((UNREADABLE,) * n, (1,) * n)
            standing = Tried(AS_IT_IS, nothing, nothing)
        start = self.tried(AS_IT_IS, few) or standing
        singles = self._distinct(catalogue(config), few, start)
        if start.loss.mean > KNOWN * chance:
            singles += self._distinct((one for s in tuple(singles) for one in in_a_batch(s.variant)), few, start)
        found = self._finals(singles, n)
        best = min([standing, *found], key=lambda one: one.loss.mean)
        if self._most > 1 and best.loss.mean > KNOWN * chance:
            found = self._finals([*singles, *self._two_at_once(singles, few)], n)
        result = self._judged(standing, found, chance)
        if result.verdict == "as_it_stands":  # what these pairs cannot show
            known = [one for one in singles if start.loss.mean <= CLOSE and one.variant.reading.end_counts]
            alike = {one.names: one for one in known if one.loss.mean - start.loss.mean <= CLOSE / 10}
            result = replace(result, equal=tuple(alike.values()))
        return result

    def _in_time(self, several: Iterable[Variant], n: int, seconds: float) -> Iterator[Tried]:
        """Wirings one after another, until the time is up, which is remembered."""
        end = time.perf_counter() + seconds
        for one in several:
            if time.perf_counter() > end:
                self._whole = False
                return
            found = self.tried(one, n)
            if found is not None:
                yield found

    def _distinct(self, several: Iterable[Variant], n: int, standing: Tried) -> list[Tried]:
        """Wirings that compute something else than the model as it stands."""
        left = self._begun + MOST_SECONDS - time.perf_counter()
        return [one for one in self._in_time(several, n, left) if not same(one.loss, standing.loss)]

    def _finals(self, several: Sequence[Tried], n: int) -> list[Tried]:
        """The best on all pairs, best first."""
        order = sorted(several, key=lambda one: one.loss.mean)[:FINAL]
        found = [self.tried(one.variant, n) for one in order]
        return sorted((one for one in found if one is not None), key=lambda one: one.loss.mean)

    def _two_at_once(self, singles: Sequence[Tried], n: int) -> list[Tried]:
        """The best with every other one, until a pair of them explains all."""
        best: dict[tuple[object, ...], Tried] = {}  # of each change, in its best batch
        for one in sorted(singles, key=lambda one: one.loss.mean):
            made = one.variant.changes or one.variant.reading
            best.setdefault((one.names, made, one.variant.answers), one)
        order = [one.variant for one in best.values()]
        both = (first.and_(second) for first in order[:STARTS] for second in order)
        tried: list[Tried] = []
        for one in self._in_time((one for one in both if one is not None), n, self._seconds):
            tried.append(one)
            if one.loss.mean <= CLOSE:
                break
        return tried

    def _judged(self, standing: Tried, found: Sequence[Tried], chance: float) -> SearchResult:
        found = [one for one in found if one.variant.reading.shift or one.loss.mean <= COPIED * chance]
        best = next(iter(found), None)
        if best is None and standing.loss.mean >= UNREADABLE:
            return replace(NOTHING, n_pairs=len(self._pairs), chance=chance)
        verdict: Verdict = "as_it_stands"
        before = standing.loss.mean
        if best is not None:
            best = _simplest(found, chance)
            gain, needed = before - best.loss.mean, GAIN + max(0.0, min(before, 2 * chance) - EASY) / 2
            tells = best.loss.mean <= before / 5 or gain >= HINT * chance
            better = gain > needed and tells and surely_better(best.loss, standing.loss)
            if better and self._explains(best, chance):
                verdict = "another"
            elif before > KNOWN * chance or better:
                verdict = "unexplained"
        equal: dict[tuple[str, ...], Tried] = {}
        if best is not None:
            near = [one for one in found if one.loss.mean - best.loss.mean <= CLOSE and one.names != best.names]
            equal = {one.names: one for one in reversed(near)}
        return SearchResult(
            verdict, standing, best, tuple(equal.values()), len({one for one, _ in self._found}), len(self._pairs),
            chance, time.perf_counter() - self._begun, self._whole,
        )  # fmt: skip

    def _explains(self, best: Tried, chance: float) -> bool:
        """Whether a wiring leaves hardly any loss, or far less than all that have nothing of it."""
        share = best.loss.mean / chance
        if share <= (SURE if len(best.names) == 1 else SURE_OF_TWO):
            return True
        few = min(FEW, len(self._pairs))
        own = self.tried(best.variant, few)
        others = [
            one.loss.mean
            for (_, n), one in self._found.items()
            if n == few and one is not None and not set(one.names) & set(best.names)
        ]
        apart = min(others, default=math.inf) - (best if own is None else own).loss.mean
        return len(best.names) == 1 and share <= MOST and apart >= APART * chance


def _simplest(found: Sequence[Tried], chance: float) -> Tried:
    """One mistake before two that explain pairs hardly better; of as many, the best."""
    best = min(found, key=lambda one: one.loss.mean)
    enough = max(best.loss.mean + CLOSE, min(3 * best.loss.mean, KNOWN * chance))
    near = (one for one in found if one.loss.mean <= enough)
    # What has less to predict comes last, as that is always easier.
    return min(near, key=lambda one: (len(one.names), not one.variant.reading.end_counts, one.loss.mean))


def matching(
    checkpoint: Runnable,
    source: Tensor | None,
    read: Tensor,
    differs: Callable[[Tensor], float],
    agrees: float,
    *,
    pause: Callable[[], None] = lambda: None,
) -> tuple[list[Variant], float]:
    """The wirings whose logits [B, T, V] equal those of somebody's code, by `differs`; and how far the nearest is.

    The wiring as it stands comes first, if it is one of them.
    """
    search, far = WiringSearch(checkpoint, ()), dict[Variant, float]()
    for one in (AS_IT_IS, *catalogue(checkpoint.config)):
        if one.reading != AS_IT_IS.reading:
            continue
        pause()
        try:
            model, tap = search.wired(one)
            made = tap()
            far[one] = differs(model.project(vectors_of(model, source, read, made), tap=made))
        except (ConfigError, QueryError, RuntimeError, IndexError):
            far[one] = math.inf
        if far.get(AS_IT_IS, math.inf) <= agrees:
            break
    return [one for one, apart in far.items() if apart <= agrees], min(far.values())
