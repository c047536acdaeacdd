"""The part Before the draw: settings that are only looked at, and what they make of the distribution of the step."""

from functools import partial
from typing import Any, Final

from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.search import sampling_pictures
from glassformer.search.sampling_pictures import looked_at, run_draws
from glassformer.shared import choices
from glassformer.shared.choices import Kept
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import Slot, View
from transformer.i18n import say
from transformer.runs.query import Sampling

TAKE, BACK = "search_take", "search_back"
NOT_TRIED: Final[dict[str, Any]] = {"try_temperature": None, "try_k": None, "try_p": None}
_KS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 100, 200, 500, 1000, 2000, 5000)
_ALL: Final = 0


def is_tried(view: View) -> bool:
    """Whether the reader has chosen settings that are only looked at."""
    return any(view.get(name) is not None for name in NOT_TRIED)


def sliders(run: OpenRun) -> None:
    """Draw the sliders, and under them the ways to the run's settings and from them."""
    how = looked_at(run)
    columns = st.columns(3, gap="medium")
    with columns[0]:
        kept = _kept(run.slot, "try_temperature", how.temperature)
        choices.decimal(
            kept,
            say("Temperature"),
            0.05,
            5.0,
            step=0.05,
            help=say("Values below 1 sharpen the distribution; values above 1 flatten it."),
        )
    with columns[1]:
        options = _top_k_options(len(run.trace.vocabulary), how.top_k)
        kept = _kept(run.slot, "try_k", how.top_k)
        help = say("At the right end of the slider, all pieces are kept.")
        choices.scale(kept, say("Top-k"), options, otherwise=_ALL, help=help)
    with columns[2]:
        kept = _kept(run.slot, "try_p", how.top_p)
        choices.decimal(kept, say("Top-p"), 0.01, 1.0, step=0.01, help=say("1 keeps all pieces."))
    _ways(run, how)


def _kept(slot: Slot, name: str, value: object) -> Kept:
    return Kept(f"{slot}{name}", value, partial(choices.put, slot, name, ()))


def _top_k_options(n_pieces: int, own: int) -> dict[int, str]:
    """The values along the line, all pieces at its end; the run's own is one of them, if it leaves any out."""
    values = sorted({k for k in (*_KS, own) if 0 < k < n_pieces})
    return {k: f"{k:,}" for k in values} | {_ALL: f"{n_pieces:,}"}


def _ways(run: OpenRun, how: Sampling) -> None:
    """Draw what leads from the settings that are looked at to those of the run, where they differ."""
    samples = isinstance(run.trace.query.decoding, Sampling)
    if samples and how == run_draws(run):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if how != run_draws(run):
            st.caption(say("This is only a preview: the run itself uses different settings."))
            st.button(
                say("Back to the run's settings")
                if samples
                else say("Back to temperature 1, without top-k or top-p"),
                key=run.key(BACK),
                on_click=partial(session.replace, run.slot, **NOT_TRIED),
                icon=":material/undo:",
            )
        st.button(say("Use these settings"), key=run.key(TAKE), on_click=partial(take, how), icon=":material/casino:")


def take(how: Sampling) -> None:
    """Callback: the run samples with these settings; its seed stays."""
    state = st.session_state
    state[session.HOW] = "sampling"
    state[session.TEMPERATURE], state[session.TOP_K], state[session.TOP_P] = how.temperature, how.top_k, how.top_p
    session.new_run()
    for slot in session.SLOTS:
        session.replace(slot, **NOT_TRIED)


# ------------------------------------------------------------------------------------------------ the part


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part; it adds no controls to `row`."""
    if run.looking.covered:
        said = say("This part would give the answer away. Reveal the step on the Step page first.")
        st.info(said, icon=":material/visibility_off:")
        return
    sliders(run)
    scene = sampling_pictures.before(run)
    if scene is not None:
        show(sampling_pictures.shares, scene)
