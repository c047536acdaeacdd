"""Click handling of charts, and a button for what takes a while.

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
    """Callback of a chart: calls `take` with what `read` makes of a click, unless None; neither may hold a run."""

    def go() -> None:
        click = last_click(key)
        meant = None if click is None else read(click)
        if meant is not None:
            take(meant)

    return go


@contextmanager
def pressed(button: Callable[..., bool], label: str, *, key: str, about: str, **look: Any) -> Iterator[bool]:
    """Draw the button; the block does what it starts, and runs again if the script run was interrupted.

    `st.rerun` interrupts a run too: call it after the block. `button` is `st.button`, a container's, or
    `st.form_submit_button`, without a callback. A click counts only for the same `about`. Leave out of `about` the
    text typed next to the button: the last of it may arrive together with the click.
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
