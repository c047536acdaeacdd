"""The Inside page: the row of its parts, the chosen one, and the choice of a side and of a token for parts."""

from collections.abc import Callable, Mapping
from functools import partial

from glassformer.frame.sentence_stepper import Still, one_token, sentence
from glassformer.inside.token_selection import INSIDE, chosen_row, sides_of, token_of
from glassformer.runs.map_axes import SIDES
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import choose_part
from glassformer.shared import controls, cover_box
from glassformer.state import session
from glassformer.state.view import Side, Slot
from transformer.i18n import say


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True, still=still(run))
    row = controls.bar(run.slot)
    with row:
        choose_part(INSIDE, run.slot)
    cover_box.part(lambda: INSIDE.entry(run).draw(run, row))


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the model as such, and the source."""
    entry, sides = INSIDE.entry(run), sides_of(run.checkpoint.config)
    if entry.still:
        return Still()
    if entry.name == "fast" and run.trace.n_steps:  # the cache grows with the step
        return None
    on_source = "target" not in sides or run.view.side == "source"
    return one_token(run, run.view.key or 0) if on_source and entry.name != "lens" else None


def choose_side(run: OpenRun, kept: controls.ControlBinding | None = None) -> Side:
    """Draw the choice of a side that the model has; by default bound to the view's `side`."""
    kept = kept or controls.field(run.slot, "side")
    return controls.choose(kept, say("Side"), {side: SIDES[side] for side in sides_of(run.checkpoint.config)},
                          bare=True)  # fmt: skip


def choose_token(run: OpenRun, side: Side, pieces: list[str], *, key: str, width: int) -> None:
    """Draw the choice of a token; of the output it goes with the step, but for rows of a prompt."""
    if side == "source":
        kept = controls.ControlBinding(run.key(key), token_of(run, side, pieces), taking(run, side))
        controls.menu(kept, say("Token"), controls.labelled(pieces), bare=True, width=width)
        return
    row = chosen_row(run)
    kept = controls.ControlBinding(run.key(key), row if row < run.trace.first_row else None, taking(run, side))
    controls.menu(kept, say("Token (its step)"), of_the_step(controls.labelled(pieces)), bare=True, width=width)


def of_the_step(pieces: Mapping[int, str]) -> dict[int | None, str]:
    """Options for tokens of the output; the first goes with the step, which the browser may have moved on."""
    return {None: say("The step's token"), **dict(pieces.items())}


def taking(run: OpenRun, side: Side) -> Callable[[object], None]:
    """Callback with a token, to look at it; it holds no run."""
    return partial(_take, run.slot, side, run.trace.first_row)


def _take(slot: Slot, side: Side, first_row: int, token: object) -> None:
    """Look at a token; one of the output belongs to a step, so the step follows."""
    if side == "source" and isinstance(token, int):
        session.replace(slot, key=token)
    elif token is None or (isinstance(token, int) and token < first_row):
        session.replace(slot, query=token)
    elif isinstance(token, int):
        session.replace(slot, query=None)
        session.move_to(slot, token - first_row)
