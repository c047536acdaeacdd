"""Drawing of declared pictures with their clicks, the choice of a page's part, and guess mode's question."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from glassformer.runs.open_run import OpenRun
from glassformer.runs.picture import InASlot, Page, PartEntry, Picture
from glassformer.runs.step_frames import FRAMES, NoFramesError
from glassformer.runs.viewed_run import HasSteps, at_step, step_of
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, drawing
from glassformer.shared.csv_export import Origin, Table
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import Click, Slot
from transformer.errors import GlassformerError
from transformer.i18n import joined, say


def show(
    picture: Picture[Any], scene: InASlot, *, take: Callable[[Any], object] | None = None, table: Table | None = None
) -> None:
    """Draw a picture in the scene's slot; nothing where the model has nothing to show. Errors: `ModelAccess`.

    `take` is called with what a click means and must not hold a run; without it, the view takes that. `table` is as
    for `drawing.chart`.
    """
    plot, key = picture.plot(scene), f"{scene.slot}{picture.key}"
    if plot is None:
        return
    of: Any = getattr(scene, "run", scene)
    shown: HasSteps | None = of if hasattr(of, "runs") else None
    lasts = {} if shown is None else {run.slot: max(run.trace.n_steps - 1, 0) for run in shown.runs}
    names, saves = list[str](), bool(table or plot.spec.get("table"))
    step = None if shown is None else step_of(shown)

    def follows(of: Origin, moment: dict[str, Any]) -> str:
        if shown is None or (saves and picture.follows == "frames"):
            return "server"  # a table that is made here would be saved of another step than the one that is shown
        names.append(FRAMES.offer(picture, shown, of, moment))
        return names[-1]

    drawing.chart(
        plot.spec,
        key=key,
        **plot.words,
        fit=plot.fit,
        of_sentence=plot.of_sentence and picture.part.of_sentence,
        on_click=plot.clicked
        and partial(_clicked, plot.clicked, slot=scene.slot, take=take, lasts=lasts, drawn=step, names=names),
        table=table,
        follows=follows,
        step=step,
    )


def _clicked(
    means: Callable[[Click], Any] | None,
    click: Click,
    *,
    slot: Slot,
    take: Callable[[Any], object] | None,
    lasts: Mapping[Slot, int],
    drawn: int | None,
    names: Sequence[str],
) -> None:
    """Callback: do what a click means at the step at which it was made, as the browser may have moved on.

    On a picture that does not follow the step, that is the step at which it was drawn; where a reader has stepped on
    since, `stepper_view.settled_step` knows better.
    """
    if click.step is not None and drawn is not None and names:
        for one, last in lasts.items():
            session.replace(one, step=min(click.step, last))
        if click.step != drawn:
            means = _meaning(names[-1], click.step)
    meant = None if means is None else means(click)
    if meant is not None and take is not None:
        take(meant)
    elif meant is not None:
        session.replace(slot, **meant)


def _meaning(name: str, step: int) -> Callable[[Click], Any] | None:
    """What a click on an offered picture means at another step; None where that cannot be said."""
    with suppress(NoFramesError, GlassformerError, BusyError):
        offer = FRAMES.find(name)
        moved = offer.picture.of(at_step(offer.shown(), step))
        return None if moved is None else moved.clicked
    return None


def show_beside(
    first: Picture[Any],
    second: Picture[Any],
    scene: InASlot,
    *,
    take: Callable[[Any], object] | None = None,
    widths: Sequence[int] = (),
) -> None:
    """Draw two pictures of a scene beside each other; the rest is as for `show` and `drawing.beside`."""
    each = (partial(show, one, scene, take=take) for one in (first, second))
    drawing.beside(*each, widths=widths)


def choose_part(page: Page, slot: Slot, parts: Mapping[str, PartEntry] | None = None) -> str:
    """Draw the choice of a part of a page, among all or some."""
    titles = {name: one.title for name, one in (page.listed() if parts is None else parts).items()}
    return controls.choose(controls.field(slot, page.panel), say("Part"), titles, bare=True)


def ask_first(run: OpenRun, why: str, *, key: str) -> None:
    """Ask for a guess, saying in a sentence what would be given away, and offer to reveal the step."""
    st.info(joined(" ", [say("What comes next?"), why]), icon=":material/visibility_off:")
    reveal = partial(session.reveal, run.slot, run.stepper.run_id, run.view.step)
    st.button(say("Reveal this step"), key=run.key(key), on_click=reveal, type="primary")
