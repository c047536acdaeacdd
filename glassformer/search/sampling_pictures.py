"""The pictures of sampling: a step before its draw, many draws; what temperature, top-k and top-p do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from glassformer.charts.candidates import (
    HOW_TO_READ_DRAWS,
    HOW_TO_READ_RESHAPED,
    Drawn,
    Shares,
    draws_spec,
    others_named,
    reshaped_spec,
)
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.search import SearchLook
from glassformer.search.tree_pictures import NO_TEXT, SEARCH, seconds_of
from glassformer.server.model_runner import cost_of
from glassformer.state.view import Slot, View, place_of
from transformer.analysis.sampled_outputs import Draw, Outcome, draws, outcomes
from transformer.i18n import joined, say
from transformer.i18n.sentence import chance
from transformer.runs.distribution import Reshaped, Spread, best, reshaped, spread
from transformer.runs.query import Query, Sampling
from transformer.runs.trace import Trace


def about_reshaping(trace: Trace, found: Reshaped) -> Captions:
    """The numbers of each distribution below each other, and what follows from them, beside the chart."""
    stages = (
        (say("The model's own"), spread(found.raw)),
        (say("Tempered"), spread(found.tempered)),
        (say("Drawn from"), spread(found.cut)),
    )
    columns = [
        say("Distribution"),
        say("Entropy (bits)"),
        say("Tokens left"),
        say("Probability of the likeliest token"),
    ]
    rows = [[name, f"{one.entropy:.2f}", f"{one.left:,}", f"{one.top:.4f}"] for name, one in stages]
    said = joined(" ", _said_of_reshaping(trace, found, *(one for _, one in stages)))
    return Captions(table=CaptionTable(columns=columns, rows=rows), below=said, beside=True)


def _said_of_reshaping(trace: Trace, found: Reshaped, raw: Spread, tempered: Spread, cut: Spread) -> Iterator[str]:
    piece = trace.vocabulary
    if raw.best == tempered.best:
        yield say(
            "“{piece}” is the likeliest token at every temperature: dividing all scores by the same number "
            "keeps their order.",
            piece=piece[tempered.best],
        )
    else:
        yield say(
            "The model itself prefers “{closed}”, but rules in its config exclude that token or lower its "
            "score. With these rules, “{piece}” is the likeliest token at every temperature.",
            closed=piece[raw.best],
            piece=piece[tempered.best],
        )
    yield _of_temperature(found.how.temperature, raw, tempered)
    yield _of_cut(trace, found, cut)


def _of_temperature(temperature: float, raw: Spread, tempered: Spread) -> str:
    if temperature == 1:
        return say("Temperature 1 leaves the scores unchanged.")
    return say(
        "At temperature {temperature:g}, the entropy changes from {raw:.2f} to {tempered:.2f} bits.",
        temperature=temperature,
        raw=raw.entropy,
        tempered=tempered.entropy,
    )


def _of_cut(trace: Trace, found: Reshaped, cut: Spread) -> str:
    away = 1 - float(found.tempered[found.cut > 0].sum())
    if not found.how.top_k and found.how.top_p == 1:
        barred = [trace.vocabulary[i] for i in trace.never_written if found.tempered[i] == 0]
        if barred:
            return say(
                "Top-k and top-p are off: every token can be drawn except those that no output may contain, such as "
                "“{piece}”.",
                piece=barred[0],
            )
        return say("Top-k and top-p are off: every token can be drawn, however improbable.")
    if cut.left == 1:
        return say("Only one token is left, so every draw gives that token, like greedy decoding.")
    by_k = int((found.by_k > 0).sum())
    if found.how.top_k and found.how.top_p < 1:
        return say("Top-k leaves {by_k:,} tokens, and top-p leaves {n:,} of these. The tokens cut off had a total "
                   "probability of {away}.",
                   by_k=by_k, n=cut.left, away=chance(away))  # fmt: skip
    return say(
        "After the cut, {n:,} tokens are left. The tokens cut off had a total probability of {away}.",
        n=cut.left,
        away=chance(away),
    )


# ------------------------------------------------------------------------------------------------ before the draw


@dataclass(frozen=True)
class BeforeDraw(RunScene):
    """What a step may draw from."""

    found: Reshaped


def run_draws(run: ViewedRun) -> Sampling:
    """How the run samples; without cuts at temperature 1 if it decodes in another way."""
    how = run.trace.query.decoding
    return how if isinstance(how, Sampling) else Sampling()


def looked_at(run: ViewedRun) -> Sampling:
    """How it would sample: by the run's own settings, where the reader has not chosen others."""
    look, own = run.view.of(SearchLook), run_draws(run)
    top_k = own.top_k if look.try_k is None else look.try_k
    return replace(
        own,
        temperature=own.temperature if look.try_temperature is None else look.try_temperature,
        top_k=top_k if top_k < len(run.trace.vocabulary) else 0,
        top_p=own.top_p if look.try_p is None else look.try_p,
    )


def before(run: ViewedRun) -> BeforeDraw | None:
    """What the step may draw from; None where nothing is written, and while somebody guesses."""
    if not run.trace.n_steps or run.visible.covered:
        return None
    step = run.view.step
    return BeforeDraw(run, reshaped(run.trace.log_probs[step], run.trace.scores_at(step), looked_at(run)))


SAMPLING = SEARCH.part("sampling", before)
MOST_ROWS: Final = 14


@SAMPLING.picture("search_before", say("Before the draw"))
def shares(scene: BeforeDraw) -> Plot:
    """The model's own probabilities, those after the temperature, and those that are drawn from."""
    found, step = scene.found, scene.run.view.step
    ids = _listed(scene)
    kept, whole = sum(found.cut[i] > 0 for i in ids), int((found.cut > 0).sum())
    rest = len(found.raw) - len(ids)
    return Plot(
        spec=reshaped_spec(
            [_row(scene, i) for i in ids],
            others=(rest, _others(found, ids, rest)),
            border=kept if whole == kept < len(ids) else None,
            title=say("Step {n}: before the draw", n=step + 1),
        ),
        alt=say("Each of the likeliest tokens at step {n} with three probabilities: the model's own, after "
                "temperature, and after top-k and top-p.", n=step + 1),
        how_to_read=HOW_TO_READ_RESHAPED,
        fit=True,
        said=about_reshaping(scene.run.trace, found),
    )  # fmt: skip


def _listed(scene: BeforeDraw) -> list[int]:
    """The pieces that have a row: the likeliest of what is drawn from, and the one that the run has."""
    listed = best(np.log(np.maximum(scene.found.tempered, 1e-45)), min(MOST_ROWS, len(scene.found.raw)))
    drawn = _drawn_by(scene.run)
    return listed if drawn is None or drawn in listed else [*listed[:-1], drawn]


def _drawn_by(run: ViewedRun) -> int | None:
    """The piece of the step, if the run drew it."""
    drew = isinstance(run.trace.query.decoding, Sampling) and run.view.step >= run.trace.n_forced
    return run.trace.tgt_ids[run.view.step] if drew else None


def _row(scene: BeforeDraw, i: int) -> Shares:
    found, drawn = scene.found, i == _drawn_by(scene.run)
    said = [say("drawn by this run")] if drawn else []
    if found.raw[i] > 0 and found.tempered[i] == 0:
        said.append(say("excluded by the model's settings, or its probability is too small to distinguish from 0"))
    elif found.by_k[i] == 0 < found.tempered[i]:
        said.append(say("cut off by top-k"))
    elif found.cut[i] == 0 < found.by_k[i]:
        said.append(say("cut off by top-p"))
    raw, tempered, cut = (float(one[i]) for one in (found.raw, found.tempered, found.cut))
    return Shares(scene.run.trace.vocabulary[i], raw, tempered, cut, id=i, note=joined("; ", said), drawn=drawn)


def _others(found: Reshaped, ids: list[int], rest: int) -> Shares:
    raw, tempered, cut = (max(1.0 - float(one[ids].sum()), 0.0) for one in (found.raw, found.tempered, found.cut))
    some_left = bool((np.delete(found.cut, ids) > 0).any())
    return Shares(others_named(rest), raw, tempered, cut if some_left else 0.0)


# ------------------------------------------------------------------------------------------------ many draws


@dataclass(frozen=True)
class Outputs:
    """The outputs of many draws."""

    slot: Slot
    n: int  # draws that are there
    every: Sequence[Outcome]  # what came of them, the most frequent first
    seed: int | None  # of the draw that is opened

    @property
    def chosen(self) -> int | None:
        """The place of the output that is opened."""
        return next((place for place, one in enumerate(self.every) if self.seed in one.seeds), None)


COUNTS: Final = (20, 50, 100, 200)
USUAL_COUNT: Final = 50
QUICK_SECONDS: Final = 0.6


def to_draw(run: ViewedRun) -> tuple[Query, int]:
    """What is drawn many times, with seed 0, and how often."""
    query = replace(run.trace.query, decoding=replace(looked_at(run), seed=0), hypothesis=0)
    return query, run.view.of(SearchLook).draws if run.view.of(SearchLook).draws in COUNTS else USUAL_COUNT


def outputs(found: Sequence[Draw], slot: Slot, view: View) -> Outputs:
    """What came of draws."""
    return Outputs(slot, len(found), outcomes(found), view.of(SearchLook).opened_seed)


def _drawn_now(run: ViewedRun) -> Outputs | None:
    """Draws that are made at once; None where that takes long, and while somebody guesses."""
    (query, n), first = to_draw(run), run.view.of(SearchLook).first_seed
    if not run.trace.n_steps or run.view.guess or seconds_of(run, n) > QUICK_SECONDS:
        return None
    found = run.work.long(
        ("draws", query, first, n),
        lambda pause: tuple(draws(run.checkpoint, query, range(first, first + n), pause=pause)),
        cost=cost_of(query) * n,
        nbytes=lambda made: 500 * len(made),
    )
    return outputs(found, run.slot, run.view)


DRAWS = SEARCH.part("draws", _drawn_now)
MOST_BARS: Final = 12  # the table has all


@DRAWS.picture("search_draws", say("The outputs of many draws"), follows="still")
def drawn(scene: Outputs) -> Plot:
    """How often each output came, beside how probable it was; a click means a seed that draws it."""
    rows = [
        Drawn(one.text or NO_TEXT, len(one.seeds), one.frequency, one.drawn, one.own, one.low, one.high, one.seeds[0])
        for one in scene.every[:MOST_BARS]
    ]
    several = len(scene.every) > MOST_BARS
    chosen = scene.chosen if scene.chosen in range(len(rows)) else None
    spec = draws_spec(
        rows,
        title=say("The most frequent outputs in {n} draws", n=scene.n)
        if several
        else say("All outputs of {n} draws", n=scene.n),
        chosen=chosen,
    )
    alt = say(
        "How often each output was drawn, next to how probable it is; the most frequent output is “{text}”.",
        text=rows[0].text,
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_DRAWS, clicked=place_of)
