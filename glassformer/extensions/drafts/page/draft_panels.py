"""Part "Draft and check": speculative decoding with a menu of drafts, rounds, timings; weights with fewer bits."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from glassformer.extensions.drafts.page import DraftsLook
from glassformer.extensions.drafts.page import draft_pictures as pictures
from glassformer.extensions.drafts.page.draft_pictures import Checked
from glassformer.extensions.drafts.rounds import Kind, Times, layers_there, timing
from glassformer.extensions.what_if.interventions.layer_changes import WIDTHS
from glassformer.frame.decoding import hidden_while_guessing
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import AT_ONCE, measured
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.search.tree_pictures import seconds_of
from glassformer.shared import controls
from glassformer.shared.controls import field
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.query import Greedy

ASK, MEASURE = "search_ask_drafts", "search_draft_times"
_AHEAD: Final = (0, 2, 4, 8)
_TURNS: Final = (3, 25)


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    if hidden_while_guessing(run.view.guess):
        return
    with row:
        _controls(run)
    if not isinstance(run.trace.query.decoding, Greedy):
        st.caption(
            say("This run is not decoded greedily; drafted and checked here is the greedy output of the same sentence.")
        )
    scene = attempt(lambda: pictures.drafted(run))
    if scene is not None:
        show(pictures.rounds, scene)
        _times(run, scene)
        show(pictures.few_bits, scene)
    elif not run.view.of(DraftsLook).with_drafts and not pictures.is_unasked(run):
        st.caption(say("Drafts with this model may take a while, so they start only when you ask for them."))
        begin = partial(session.replace, run.slot, with_drafts=True)
        st.button(say("Make drafts"), key=run.key(ASK), icon=":material/play_arrow:", on_click=begin)


def _controls(run: OpenRun) -> None:
    """Draw the choice of the draft and of what it has."""
    how, layers = pictures.how_of(run), layers_there(run.checkpoint)
    alone = not anatomy(run.checkpoint.config).reads
    kinds: dict[Kind, str] = {
        "bits": say("Fewer bits"),
        **({"layers": say("Fewer layers")} if layers else {}),
        "source": say("The text so far") if alone else say("The source's tokens"),
        "jacobi": say("Guesses (Jacobi)"),
    }
    controls.menu(field(run.slot, "draft"), say("Draft"), kinds, bare=True, width=190)
    if how.kind == "bits":
        bits = {n: pictures.bits_named(n) for n in WIDTHS}
        controls.menu(field(run.slot, "draft_bits"), say("Bits"), bits, bare=True, width=110)
    if how.kind == "layers":
        every = run.checkpoint.config.n_decoder_layers
        names = {n: say("{n} of {all} layers", n=n, all=every) for n in layers}
        controls.menu(field(run.slot, "draft_layers"), say("Layers"), names, otherwise=how.amount, bare=True, width=150)
    ahead = {n: say("{n} tokens per draft", n=n) if n else say("Whole drafts") for n in _AHEAD}
    controls.menu(field(run.slot, "ahead"), say("Length of a draft"), ahead, bare=True, width=170)


def _times(run: OpenRun, scene: Checked) -> None:
    """Draw what it takes on this machine, once somebody has asked."""
    query = pictures.greedy_query(run)
    seconds = 3 * seconds_of(run, 1)
    turns = int(min(max(AT_ONCE / max(seconds, 1e-3), _TURNS[0]), _TURNS[1]))
    key = ("draft_times", query, scene.how, turns)
    times = measured(
        key,
        partial(timing, run.checkpoint, query, scene.how, turns=turns),
        seconds=max(seconds * turns, AT_ONCE + 0.5),
        wish=key,
        widget=run.key(MEASURE),
        label=say("Measure the time on this machine"),
    )
    if times is not None:
        st.markdown(joined(" ", times_in_words(times, scene)))


def times_in_words(times: Times, scene: Checked) -> Iterator[str]:
    """What was measured, in sentences."""
    both = times.draft + times.check
    yield say(
        "**{draft:.1f} ms** for drafts and **{check:.1f} ms** for checks, together {both:.1f} ms. One token at a "
        "time: **{alone:.1f} ms** (medians of {n} turns on this machine).",
        draft=times.draft,
        check=times.check,
        both=both,
        alone=times.alone,
        n=times.turns,
    )
    if times.quick:
        yield say("Drafts were timed with torch's own 8-bit products.")
    elif scene.how.kind == "bits":
        yield say(
            "Here, rounded weights are stored in 32 bits, so this draft is as slow as the model itself. torch "
            "has faster products for 8 bits only."
        )
