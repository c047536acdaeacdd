"""What touches private parts of Streamlit is off when they are not as they were, and the log says what is lost."""

import asyncio
from contextlib import suppress
from functools import partial
from threading import RLock
from types import SimpleNamespace

import pytest
import streamlit
from streamlit import net_util
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime import app_session
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
from streamlit.runtime.state.safe_session_state import SafeSessionState

from glassformer.server import server_options, streamlit_private
from glassformer.server.descriptors import n_open
from glassformer.server.streamlit_private import (
    HOSTS,
    PAGE,
    REPLACED,
    SCRIPT,
    UPLOADS,
    LateLoop,
    _at,
    dispatching,
    found,
    is_on,
    keeping,
    problem,
)

USES = [*REPLACED, SCRIPT, UPLOADS, HOSTS, PAGE]


@pytest.fixture
def asked_anew():
    yield
    for kept in (is_on, streamlit_private._context):
        kept.cache_clear()


@pytest.mark.parametrize("use", USES, ids=lambda use: use.relies[0])
def test_a_use_is_on_and_under_another_version_or_by_the_environment_off_which_the_log_says_once(
    use, monkeypatch, caplog, asked_anew
):
    assert problem(use) == ""
    is_on.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(streamlit, "__version__", "1.68.0")
        assert [is_on(use) for _ in range(2)] == [False] * 2
    assert len(caplog.messages) == 1
    assert "Streamlit is 1.68.0, tested is 1.67.*" in caplog.text
    is_on.cache_clear()
    monkeypatch.setenv("GLASSFORMER_STREAMLIT_PRIVATE", "off")
    assert not is_on(use)
    assert [use.lost in line for line in caplog.messages] == [True] * 2


@pytest.mark.parametrize("use", USES, ids=lambda use: use.relies[0])
def test_each_guard_stays_off_when_what_it_relies_on_has_gone_or_takes_something_else(use, monkeypatch):
    for number, name in enumerate(use.relies):
        with monkeypatch.context() as patched:
            if ":" not in name:
                others = "; ".join(one for one in use.relies if one != name).encode()
                patched.setattr(streamlit_private, "_script_of_page", lambda others=others: others)
            elif "(" in name:
                patched.setattr(*_at(name), lambda something_else: None)
            else:
                owner, last = _at(name)
                patched.delattr(owner, last, raising=False)
                others = {one: is_ for one, is_ in getattr(owner, "__annotations__", {}).items() if one != last}
                patched.setattr(owner, "__annotations__", others, raising=False)
                if isinstance(owner, type):
                    patched.setattr(owner, "__init__", lambda self: None)
            alike = [one for one in use.relies[: number + 1] if one.rpartition(".")[0] == name.rpartition(".")[0]]
            assert problem(use) in [f"{one} is not as it was" for one in alike]  # an object's attributes go together


def test_what_is_on_is_replaced_and_what_is_off_left_as_it_is(monkeypatch, asked_anew):
    for name in (name for use, makers in REPLACED.items() for name in use.relies[: len(makers)]):
        monkeypatch.setattr(*_at(name), getattr(*_at(name)))  # and put back
    before = net_util.get_external_ip, PagesManager.uses_pages_directory, app_session.asyncio
    with monkeypatch.context() as patched:
        patched.setenv("GLASSFORMER_STREAMLIT_PRIVATE", "off")
        is_on.cache_clear()
        streamlit_private.begin()
        assert before == (net_util.get_external_ip, PagesManager.uses_pages_directory, app_session.asyncio)
        assert server_options.mode(["--uploads", "on"]) == "off"
        assert not streamlit_private.in_fragment()
        assert streamlit_private.session_id()  # a name of our own
    is_on.cache_clear()
    monkeypatch.setattr(PagesManager, "uses_pages_directory", True)
    streamlit_private.begin()
    assert net_util.get_external_ip() is None
    assert PagesManager.uses_pages_directory is False
    assert app_session.asyncio.new_event_loop is LateLoop


class Session:
    """As much of a Streamlit session as asks for runs; their threads have not begun."""

    def __init__(self):
        self._scriptrunner, self.asked = None, []

    def request_rerun(self, client_state):
        if self._scriptrunner is not None:
            self._scriptrunner._requests.request_stop()
        self.asked.append([one.id for one in client_state.widget_states.widgets])
        self._scriptrunner = SimpleNamespace(_requests=ScriptRequests())
        self._scriptrunner._requests.request_rerun(RerunData(widget_states=client_state.widget_states))


class Pressed:
    """A run's state that notes which callbacks were called, and ends the run where it was stopped."""

    def __init__(self, requests, called):
        self._lock, self._state, self._requests, self._called = RLock(), self, requests, called

    def _yield_callback(self):
        if self._requests.on_scriptrunner_yield() is not None:
            raise InterruptedError

    def on_script_will_rerun(self, fresh_widget_states):
        self._called.append([one.id for one in fresh_widget_states.widgets])


def pressed(*names):
    state = ClientState()
    for name in names:
        state.widget_states.widgets.add(id=name, trigger_value=True)
    return state


@pytest.mark.parametrize("reached", ["nothing", "its script", "its callbacks"])
def test_what_was_pressed_for_a_run_is_called_back_for_once(reached, monkeypatch):
    session, called = Session(), []
    ask = partial(keeping(Session.request_rerun), session)
    ask(pressed("answer"))
    first = session._scriptrunner._requests
    dispatch = dispatching(SafeSessionState.on_script_will_rerun)

    def run(requests):
        """What a run's thread does, from where it is."""
        monkeypatch.setattr(streamlit_private, "found", lambda name: (
            (lambda **_: SimpleNamespace(script_requests=requests)) if "get_script_run_ctx" in name else found(name)
        ))  # fmt: skip
        with suppress(InterruptedError):
            dispatch(Pressed(requests, called), requests._rerun_data.widget_states)

    if reached != "nothing":
        assert first.on_scriptrunner_ready().type is ScriptRequestType.RERUN
    if reached == "its callbacks":
        run(first)
    ask(pressed("report"))
    if reached == "its script":
        run(first)
    second = session._scriptrunner._requests
    assert second.on_scriptrunner_ready().type is ScriptRequestType.RERUN
    run(second)
    assert first.on_scriptrunner_ready().type is ScriptRequestType.STOP
    assert called == ([["answer"], ["report"]] if reached == "its callbacks" else [["report", "answer"]])


def test_an_event_loop_has_nothing_open_until_it_runs_as_any_other():
    async def work():
        await asyncio.sleep(0)
        return await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2])

    before = n_open()
    loops = [LateLoop() for _ in range(50)]
    assert n_open() == before
    assert [loops[0].run_until_complete(work()) for _ in range(2)] == [3, 3]
    loops[0].run_until_complete(loops[0].shutdown_default_executor())
    for loop in loops:
        loop.close()
    assert all(loop.is_closed() for loop in loops)
    assert n_open() == before
