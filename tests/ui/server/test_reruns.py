"""What Streamlit would make again at each rerun: made once, it is the same."""

import pytest
from streamlit import config
from streamlit.components.v2.presentation import make_bidi_component_presenter
from streamlit.proto.NewSession_pb2 import CustomThemeConfig, NewSession
from streamlit.runtime import app_session
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState, Value
from streamlit.web.server.starlette.starlette_server_config import WEBSOCKET_MAX_SEND_QUEUE_SIZE

from ui.server import reruns
from ui.server.reruns import AT_ONCE, briefly, each, once, together

OWN = app_session._populate_theme_msg
SECTIONS = {"": "theme"} | {one.value: f"theme.{one.value}" for one in config.CustomThemeCategories}


def look(populate):
    """The whole look, as the first message of a rerun has it."""
    message = NewSession().custom_theme
    for path, section in SECTIONS.items():
        part = message
        for name in filter(None, path.split(".")):
            part = getattr(part, name)
        populate(part, section)
    return message


@pytest.fixture
def reads(monkeypatch):
    """Sections of the look whose options are read."""
    read = []
    real = config.get_options_for_section
    monkeypatch.setattr(config, "get_options_for_section", lambda section: read.append(section) or real(section))
    return read


def test_the_look_is_streamlits_own_and_its_options_are_read_once(reads):
    populate = once(OWN)
    first, second = look(populate), look(populate)
    assert sorted(reads) == sorted(SECTIONS.values())
    assert first == second == look(OWN)
    assert first.dark.background_color == "#141B23"


def test_what_was_made_once_is_not_shared():
    populate = once(OWN)
    look(populate).dark.background_color = "red"
    assert look(populate).dark.background_color != "red"


def test_a_section_that_says_nothing_is_not_sent():
    message = CustomThemeConfig()
    once(lambda part, section: None)(message.sidebar, "theme.sidebar")
    assert not message.HasField("sidebar")


def shown(make, event):
    """What a session shows of a component whose state is given, and of which an event may have come just now."""
    state = SessionState()
    widgets = state._new_widget_state
    widgets.set_widget_metadata(
        WidgetMetadata("events", lambda value: value, lambda value: value, "json_trigger_value")
    )
    if event is not None:
        widgets.states["events"] = Value([{"event": "clicked", "value": event}])
    return make("events", "own", {"step"})({"step": 3}, state)


@pytest.mark.parametrize("event", [None, 7])
def test_a_component_says_what_it_says_without_this(event):
    found = shown(briefly(make_bidi_component_presenter), event)
    assert found == shown(make_bidi_component_presenter, event)
    assert found == {"step": 3} | ({} if event is None else {"clicked": 7})


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_messages_are_sent_in_their_order_after_few_rounds_of_the_loop(count):
    asked, got = [], []
    lists = together(lambda session: asked.append(session) or list(range(count)))("session")
    for one in lists:
        each(lambda runtime, to, message: got.append((runtime, to, message)))("runtime", "to", one)
    assert got == [("runtime", "to", message) for message in range(count)]
    assert asked == ["session"]
    assert len(lists) == -(-count // AT_ONCE)
    assert max(map(len, lists), default=0) < WEBSOCKET_MAX_SEND_QUEUE_SIZE


def test_all_that_is_replaced_is_there():
    """A Streamlit that calls it otherwise is left as it is: then `reruns` needs a look."""
    assert [getattr(owner, name) for owner, name in reruns.REPLACED]
