"""What is compared with what: the one choice of the page, and of each comparison the choice of its second run.

Where nothing was chosen yet, one sentence leads on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.runs.interventions import ZeroHead
from ui.compare import checkpoints, differing, second_branch
from ui.frame.source_box import glossed
from ui.runs import measuring
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.shared import choices, drawing, page_style
from ui.shared.choices import Kept
from ui.shared.door import st
from ui.state import nested, session
from ui.state.view import MAIN, SECOND, Compared
from words import say

COMPARED: Final[dict[Compared, str]] = {
    "changed": say("Control and changed"),
    "sentences": say("Two sentences"),
    "checkpoints": say("Two checkpoints"),
    "branches": say("Two branches"),
    "heads": say("Two heads"),
}
WAYS: Final = say("Two ways to run")
CHOICE: Final = "compared"
SENTENCE: Final = f"{SECOND}compared_sentence"
EXAMPLE: Final = f"{SECOND}compared_example"
ZERO: Final = "compared_zero"
MOST_EXAMPLES: Final = 3


def row(compared: Compared) -> None:
    """Draw the choice of what is compared."""
    options = {**COMPARED, "ways": WAYS} if compared == "ways" else COMPARED
    with st.container(key=f"compared-{page_style.BAR}"):
        choices.choose(Kept(CHOICE, compared, _take), say("What is compared"), options, bare=True)


def _take(compared: Compared) -> None:
    """Callback: compare something else; of two heads both are those that are looked at, at first."""
    beside = ""
    if compared == "heads":
        view = session.view()
        said = {"kind": view.kind, "layer": view.layer, "head": view.head}
        beside = nested.write({name: _said(value) for name, value in said.items()})
    session.stand(MAIN, beside=beside, notes=())
    session.replace(MAIN, compared="auto" if compared == "changed" else compared)
    session.move_to(SECOND, session.view().step)


def _said(value: str | int | None) -> str:
    """A place as an address says it."""
    return "" if value is None else value if isinstance(value, str) else str(value + 1)


def chosen(main: OpenRun, compared: Compared) -> Checkpoint | None:
    """Draw the choice of the second run.

    Args:
        main: The first one.
        compared: What is compared; not "changed", for which `proposed` is.

    Returns:
        What the second one runs on; None if there is no second one, and a sentence leads on.
    """
    draw: dict[Compared, Callable[[OpenRun], Checkpoint | None]] = {
        "sentences": _sentences, "checkpoints": checkpoints.chosen, "branches": second_branch.chosen,
        "heads": _heads, "ways": lambda run: run.checkpoint,
    }  # fmt: skip
    return draw[compared](main)


# ------------------------------------------------------------------------------------------------ control and changed


def proposed(main: OpenRun) -> ZeroHead | None:
    """Say that nothing was changed yet, and offer to take a head away.

    Returns:
        The head that is looked at, or the one that matters most: it is taken away on the right; None if neither is
        known at once.
    """
    view, trace = main.view, main.trace
    looked_at = view.layer is not None and view.head is not None
    found = None if looked_at else measuring.found_now(main.checkpoint, trace)
    if view.layer is not None and view.head is not None:
        change = ZeroHead(view.kind, view.layer, view.head)
        said = say("Nothing is changed in this run yet. On the right the head that is looked at is taken away.")
    elif found is not None:
        change = ZeroHead(*measuring.matters_most(found))
        said = say(
            "Nothing is changed in this run yet. On the right the head without which this output loses most is "
            "taken away."
        )
    else:
        kind = trace.kinds[-1]
        change = ZeroHead(kind, trace.maps(kind).shape[0] - 1, 0)
        said = say(
            "Nothing is changed in this run yet. Change one thing, and the run without the change stands on the left "
            "and the run with it on the right."
        )
    st.caption(said)
    kind, layer, head = change.kind, change.layer, change.head
    label = say("Zero head {head} of layer {layer}, {kind}", head=head + 1, layer=layer + 1, kind=KIND_NAMES[kind])
    st.button(label, key=ZERO, on_click=_zero, args=(change,), icon=":material/science:")
    return change if looked_at or found is not None else None


def _zero(change: ZeroHead) -> None:
    session.stand(MAIN, interventions=(change,), hypothesis=0, beside="", notes=())
    session.replace(MAIN, compared="auto")
    session.move_to(SECOND, session.view().step)


# ------------------------------------------------------------------------------------------------ two sentences


def _sentences(main: OpenRun) -> Checkpoint | None:
    asked = differing.said().get("src", "")
    if st.session_state.get(SENTENCE) != asked:
        st.session_state[SENTENCE] = asked
    st.text_input(
        say("The other sentence"),
        key=SENTENCE,
        on_change=_take_sentence,
        placeholder=say("Type the other sentence, then press Enter"),
        label_visibility="collapsed",
    )
    if asked.strip():
        return main.checkpoint
    st.info(say("Type another sentence above, or take one of these."), icon=":material/keyboard:")
    card = main.checkpoint.card
    others = [example for example in card.tried() if example != main.trace.query.source]
    for place, example in enumerate(others[:MOST_EXAMPLES]):
        shown = drawing.plain(glossed(example, card.glosses.get(example, "")))
        st.button(shown, key=f"{EXAMPLE}_{place}", type="tertiary", on_click=partial(differing.differ, src=example))
    return None


def _take_sentence() -> None:
    differing.differ(src=st.session_state[SENTENCE] or None)


# ------------------------------------------------------------------------------------------------ two heads


def _heads(main: OpenRun) -> Checkpoint | None:
    """Both sides show one run, so there always is a second one."""
    return main.checkpoint
