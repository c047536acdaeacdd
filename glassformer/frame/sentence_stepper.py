"""Source and output tokens of a run in the stepper (custom component): its payload, the chosen token, callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glassformer.components.custom_component import is_count, told
from glassformer.components.stepper_view import STEPPER, StepperRun, rest, rest_key, settled_step
from glassformer.runs.open_run import OpenRun
from glassformer.runs.picture import PAGES
from glassformer.runs.viewed_run import chosen_map, heads_name
from glassformer.shared import cover_box, page_style
from glassformer.shared.i18n import st
from glassformer.state import global_params, session
from glassformer.state.view import MAIN, Slot
from transformer.i18n import say

SAVES = "saves"  # what makes a file of the run, and is to know the step
RESTED = "rested"  # of a slot: the browser has just said where, and no run of the page has heard of it


@dataclass(frozen=True)
class ChosenToken:
    """The selected source piece, for a page on which a click selects another."""

    place: int  # the piece, from 0
    take: Callable[[int], None]  # Called with the piece that was clicked. A session keeps it: it must not hold a run.


@dataclass(frozen=True, eq=False)
class Still:
    """What a part of a page looks at where nothing in it moves with the step."""

    weights: np.ndarray | None = None  # of each source piece, 0 to 1; None if it looks at none
    label: str = ""  # what they are, as a sentence


def sentence(
    run: OpenRun,
    *,
    compact: bool = False,
    sourceless: bool = False,
    led: bool = False,
    asks: bool = False,
    large: bool = False,
    still: Still | None = None,
    chosen: ChosenToken | None = None,
    moved: Callable[[], None] | None = None,
    beside: Slot | None = None,
    publish: Callable[..., None] | None = None,
) -> None:
    """Draw the source and the output with the controls of the step.

    Args:
        run: The run.
        compact: Omit the running text.
        sourceless: Omit the source, which is elsewhere on the page.
        led: Omit the buttons; another stepper of the page moves this one.
        asks: Whether something else than `Part.asks` and pictures has to be drawn anew at each step.
        large: Whether the page is about the output, whose text is in large type.
        still: What is selected, if nothing on the page depends on the step: then there are no controls, except in
            guess mode, where the step also decides what is visible.
        chosen: The selected source piece, if a click selects another.
        moved: Called once the user has come to rest on another step. A session keeps it: it must not hold a run.
        beside: The slot of another run whose stepper moves together with this one.
        publish: Writes the URL of a step for which nothing is drawn, as `RunUrl.publish`, if that says more than this
            run. A session keeps it: it must not hold a run.
    """
    sent, key = run.stepper, run.key(session.STEPPER)
    step, guess, is_covered = run.view.step, run.view.guess, cover_box.is_on()
    if still is not None and not guess:
        shading = None if still.weights is None else np.asarray(still.weights, np.float32)[None]
        sent = replace(sent, shading=shading, shading_label=still.label, still=True)
    if sourceless:
        sent = replace(sent, source=(), shading=None, shading_label="")
    if is_covered:  # a lesson asks first what the model weighed
        bare = tuple(replace(chip, probability=None) for chip in sent.target)
        sent = replace(sent, target=bare, shading=None, shading_label="")
    if sent.still or not sent.target:
        st.html(page_style.WITHOUT_CONTROLS)
    payload = {
        "name": key,
        "run": sent.plain,
        # The browser takes the step only when the run or this is new: a page that is still running never throws back
        # a user who steps on.
        "step": step,
        "step_revision": session.standing(run.slot).step_revision,
        "covered": guess,  # the current piece and what follows from it are hidden behind "?"
        # The one step whose piece is shown because it was guessed. Other steps stay covered even before Python hears
        # that the reader moved on.
        "revealed_step": step if guess and run.visible.revealed else None,
        "foretold": not is_covered and not guess,  # what is still to come is there, in grey
        "large": large,
        "compact": compact,
        "led": led,
        "asks": asks or _asks(run),
        "moves": "" if beside is None else f"{beside}{session.STEPPER}",
        "chosen": None if chosen is None else chosen.place,
        "choosable": chosen is not None,
    }
    choose = None if chosen is None else partial(_choose, key, chosen.take)
    STEPPER.draw(payload, key=key, hears={"step": partial(_settled, run.slot, moved), "chosen": choose})
    with st.container(key=run.key(page_style.REST)):
        alone = run.shown()
        addresses = alone.addresses() if beside is None else None  # of two runs both steps have to be heard
        _hears_of_steps(run.stepper, key, run.slot, publish or alone.publish, addresses)


def _asks(run: OpenRun) -> bool:
    """Whether something on the page has to be drawn anew at each step."""
    page = PAGES.get(st.session_state.get(session.URL_PAGE, ""))
    part = None if page is None else page.chosen(run.view)
    here = session.standing(run.slot)
    return part is None or part.asks or run.view.guess or bool(here.notes) or cover_box.is_on()


@st.fragment
def _hears_of_steps(
    run: StepperRun, key: str, slot: Slot, publish: Callable[..., None], addresses: tuple[str, str] | None
) -> None:
    """Hear of a step that nothing has to be drawn for; a session keeps this, so it holds no run."""
    if st.session_state.pop(f"{slot}{RESTED}", False):
        here = session.standing(slot)
        step = settled_step(run, key=key, step=here.view.step, step_revision=here.step_revision)
        session.replace(slot, step=step)
        publish(step, carries=False)
        if slot == MAIN and (kept := st.session_state.get(SAVES)) is not None:
            kept.step = step
    addresses = None if global_params.guidance().leads else addresses  # a class follows its teacher's steps
    rest(key=key, addresses=addresses, on_step_change=partial(_rested, slot, key))


def _rested(slot: Slot, key: str) -> None:
    """Callback: the reader has come to rest, and all charts have followed."""
    session.settled(slot)
    report = told(rest_key(key), "step")
    session.browser_wrote(str(report.get("written", "")) if isinstance(report, dict) else "")
    st.session_state[f"{slot}{RESTED}"] = True


def _settled(slot: Slot, moved: Callable[[], None] | None) -> None:
    session.settled(slot)
    if moved is not None:
        moved()


def _choose(key: str, take: Callable[[int], None]) -> None:
    if is_count(place := told(key, "chosen")):
        take(place)


def one_token(run: OpenRun, place: int) -> Still:
    """A part that looks at one token of the source."""
    weights = np.zeros(len(run.trace.src_tokens), np.float32)
    weights[min(place, len(weights) - 1)] = 1
    return Still(weights, say("Shaded: the chosen token"))


def encoder_attention(run: OpenRun) -> Still:
    """A part that looks at how the source looks at itself: from the chosen query, or on average over all."""
    view = run.view
    chosen, whose = chosen_map(run.visible, "encoder"), heads_name(run.trace, view, "encoder")
    if view.query is not None and view.query < len(chosen):
        label = say("Shaded: what the chosen query looks at (encoder self-attention, {whose})", whose=whose)
        return Still(chosen[view.query], label)
    label = say("Shaded: what all queries look at on average (encoder self-attention, {whose})", whose=whose)
    return Still(chosen.mean(axis=0), label)
