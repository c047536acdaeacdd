"""What Streamlit makes again at each rerun though it stays the same: here it is made once.

A class that does something at the same moment waits for each other's reruns, so a millisecond counts a hundred times.
Source: streamlit 1.67, `runtime/app_session.py`, which reads all options of the look into the first message of each
rerun, and `components/v2/presentation.py`, which declares a class whenever somebody looks at what a component said.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamlit.components.v2.bidi_component import main
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session, runtime

from ui.server.descriptors import late

Populate = Callable[..., None]
"""Writes the options of a section of the look into a message."""
AT_ONCE: Final = 100  # messages; of 500 that wait for a connection Streamlit takes it for broken


def begin() -> None:
    """From now on; to be called once, when the configuration has been read. A Streamlit without all this stays so."""
    if all(hasattr(owner, name) for owner, name in REPLACED):
        for (owner, name), make in REPLACED.items():
            setattr(owner, name, make(getattr(owner, name)))


def once(populate: Populate) -> Populate:
    """The same look without reading its options again, which a running server does not change."""
    made: dict[str, CustomThemeConfig] = {}

    def copy(message: CustomThemeConfig, section: str = "theme") -> None:
        if section not in made:
            look = CustomThemeConfig()
            populate(look, section)
            made[section] = look
        if made[section].ByteSize():  # else a section that says nothing would be sent, too
            message.MergeFrom(made[section])

    return copy


def briefly(make: Callable[..., Callable[[Any, Any], Any]]) -> Callable[..., Callable[[Any, Any], Any]]:
    """Makes what shows a session what a component said: its own state as it is, unless an event came just now.

    So nothing may be assigned to a component's state in `st.session_state`; nobody does.
    """

    def made(aggregator: str, *of: Any, **more: Any) -> Callable[[Any, Any], Any]:
        whole = make(aggregator, *of, **more)

        def present(value: Any, state: Any) -> Any:
            return whole(value, state) if aggregator in state._new_widget_state.states else value

        return present

    return made


def together(flush: Callable[[Any], list[Any]]) -> Callable[[Any], list[list[Any]]]:
    """What a session has to send, in a few lists: after each of them the server's loop goes round.

    A round for each message would be a call of the system for each, and thousands of times the loop would wait for
    Python's lock, which all pages that are drawn want, too.
    """

    def flushed(session: Any) -> list[list[Any]]:
        messages = flush(session)
        return [messages[first : first + AT_ONCE] for first in range(0, len(messages), AT_ONCE)]

    return flushed


def each(send: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, list[Any]], None]:
    """Sends such a list."""

    def sent(runtime: Any, to: Any, messages: list[Any]) -> None:
        for message in messages:
            send(runtime, to, message)

    return sent


REPLACED: Final[Mapping[tuple[Any, str], Callable[[Any], Any]]] = {
    (app_session, "_populate_theme_msg"): once,
    (app_session, "asyncio"): late,
    (main, "make_bidi_component_presenter"): briefly,
    (app_session.AppSession, "flush_browser_queue"): together,
    (runtime.Runtime, "_send_message"): each,
}
