"""What follows from a click on a chart, and a button for what takes a while.

The press is not forgotten when the run that it was made for is stopped: Streamlit stops a run as soon as the browser
asks for the next one, and a press belongs to one run alone. Runs of a visitor may even overlap for a moment, and the
end of the one takes the press from the other. A callback comes first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from glassformer.components.plotly_component import last_click
from glassformer.shared.i18n import st
from glassformer.state.click import Click

_Meant = TypeVar("_Meant")


def on_click(key: str, read: Callable[[Click], _Meant | None], take: Callable[[_Meant], object]) -> Callable[[], None]:
    """Callback of a chart: `take` is called with what a click is read as, if that is something.

    A session keeps it: neither function may hold a run.
    """

    def go() -> None:
        click = last_click(key)
        meant = None if click is None else read(click)
        if meant is not None:
            take(meant)

    return go


@contextmanager
def pressed(button: Callable[..., bool], label: str, *, key: str, about: str, **look: Any) -> Iterator[bool]:
    """Draw the button; what it starts stands in the block, and is started again if it was stopped.

    `st.rerun` stops a run too: it belongs behind the block. The button is drawn by `st.button`, the same of a
    container, or `st.form_submit_button`, without a callback. It counts for what it is `about`; pressed for something
    else, it counts no more. That is not what is typed beside it, as what was typed last may come together with the
    press.
    """
    mark = f"pressed_{key}"
    button(label, key=key, on_click=_press, args=(mark, about), **look)
    try:
        yield st.session_state.get(mark) == about
    except Exception:
        st.session_state.pop(mark, None)
        raise
    st.session_state.pop(mark, None)


def _press(mark: str, about: str) -> None:
    st.session_state[mark] = about
