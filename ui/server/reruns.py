"""What Streamlit makes again at each rerun though it stays the same: here it is made once.

A class that does something at the same moment waits for each other's reruns, so a millisecond counts a hundred times.
Source: streamlit 1.67, `runtime/app_session.py`, which reads all options of the look into the first message of each
rerun, and `components/v2/presentation.py`, which declares a class whenever somebody looks at what a component said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.components.v2.bidi_component import main
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

Populate = Callable[..., None]
"""Writes the options of a section of the look into a message."""


def begin() -> None:
    """From now on; to be called once, when the configuration has been read."""
    app_session._populate_theme_msg = once(app_session._populate_theme_msg)
    components: Any = main
    components.make_bidi_component_presenter = briefly(components.make_bidi_component_presenter)


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
