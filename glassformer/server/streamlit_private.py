"""Streamlit internals in use, each guarded: patches, session id and state, uploaded files, CSS selectors.

A use is off under a version that was not tested, where what it relies on is not as it was, and where the environment
says `GLASSFORMER_STREAMLIT_PRIVATE=off`. The app works without any of them; the log says once what is lost.

Rules of style name a part of the page as CSS names a custom selector, `:--main`, and `styled` puts Streamlit's name in
its place; the browser has the same names as `PAGE` (`glassformer/components/common/streamlit-page.js`). Keys of ours,
`st-key-…`, are public.
Source: streamlit 1.67, asyncio of Python 3.11 to 3.14.
"""

import asyncio
import logging
import os
import re
import selectors
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import streamlit as st

TESTED: Final = "1.67."
VARIABLE: Final = "GLASSFORMER_STREAMLIT_PRIVATE"
AT_ONCE: Final = 100  # messages in a list; of 500 that wait for a connection Streamlit takes it for broken
_LOG: Final = logging.getLogger("glassformer.streamlit")


@dataclass(frozen=True, eq=False)
class Use:
    """A use of something private."""

    lost: str  # what is lost without it, for the log
    relies: tuple[str, ...]  # "module:attribute", "module:function(parameters)", or a word that the page's script has


_CONTEXT = "streamlit.runtime.scriptrunner:get_script_run_ctx"
_SCRIPT = "streamlit.runtime.scriptrunner:ScriptRunContext"
_FILES = "streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager"
_RUNTIME = "streamlit.runtime:Runtime"
_STATE = "streamlit.runtime.state.session_state"
_SAFE = "streamlit.runtime.state.safe_session_state:SafeSessionState"
_REQUESTS = "streamlit.runtime.scriptrunner_utils.script_requests"
_COALESCE = f"{_REQUESTS}:_coalesce_widget_states(old_states, new_states)"
# fmt: off
SCRIPT: Final = Use("the menu blinks when another page opens, and a lesson's panel may be one run behind", (
    f"{_CONTEXT}(suppress_warning)", f"{_SCRIPT}.session_id", f"{_SCRIPT}.session_state",
    f"{_SCRIPT}.fragment_ids_this_run", f"{_SCRIPT}.run_with_active_hash(self, page_hash)",
    f"{_SCRIPT}.pages_manager", "streamlit.runtime.pages_manager:PagesManager.main_script_hash",
))
SETTINGS: Final = Use("a model that is served from a notebook has Streamlit's own look and limits", (
    "streamlit.config:_main_script_path", "streamlit.config:get_config_options(force_reparse, options_from_flags)",
))
UPLOADS: Final = Use("the server takes no uploads, as their memory cannot be bounded", (
    f"{_FILES}.remove_file(self, session_id, file_id)", f"{_FILES}.file_storage", f"{_RUNTIME}.instance()",
    f"{_RUNTIME}.is_active_session(self, session_id)", f"{_RUNTIME}.uploaded_file_mgr",
))
HOSTS: Final = Use("--allowed-hosts adds nothing", ("streamlit.config:set_option(key, value, where_defined)",))
PAGE: Final = Use("pages look plain and say nothing while they load, steps and links ask the server", (
    "data-test-script-state", "stMainBlockContainer", "BACKEND_BASE_URL",
))
# fmt: on


def _no_address(_: Any) -> Callable[[], None]:
    """For each visitor of an unknown origin, Streamlit would ask a server of Amazon's what this machine is called."""
    return lambda: None


def _no_pages(_: Any) -> bool:
    """A folder pages/ makes Streamlit look for pages by itself until a first visitor has run st.navigation."""
    return False


def _quiet(logger: logging.Logger) -> logging.Logger:
    """Caches are filled before there is a visitor, which Streamlit remarks on."""
    logger.addFilter(lambda record: record.levelno >= logging.ERROR)  # Streamlit sets levels at any time
    return logger


def once(populate: Callable[..., None]) -> Callable[..., None]:
    """Write a section of the look into a message without reading its options again, which no running server changes."""
    made: dict[str, Any] = {}

    def copy(message: Any, section: str = "theme") -> None:
        if section not in made:
            made[section] = type(message)()
            populate(made[section], section)
        if made[section].ByteSize():  # else a section that says nothing would be sent, too
            message.MergeFrom(made[section])

    return copy


def together(flush: Callable[[Any], list[Any]]) -> Callable[[Any], list[list[Any]]]:
    """Give a session's messages in a few lists; the server's event loop goes round after each of them.

    A round per message is a system call each, and each time the loop waits for the GIL, which all page runs want.
    """

    def flushed(session: Any) -> list[list[Any]]:
        messages = flush(session)
        return [messages[first : first + AT_ONCE] for first in range(0, len(messages), AT_ONCE)]

    return flushed


def each(send: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, list[Any]], None]:
    """Send such a list."""

    def sent(runtime: Any, to: Any, messages: list[Any]) -> None:
        for message in messages:
            send(runtime, to, message)

    return sent


def briefly(make: Callable[..., Callable[[Any, Any], Any]]) -> Callable[..., Callable[[Any, Any], Any]]:
    """A component's own state as it is, unless an event came just now; Streamlit declares a class at each look at it.

    So nothing may be assigned to a component's state in `st.session_state`; nobody does.
    """

    def made(aggregator: str, *of: Any, **more: Any) -> Callable[[Any, Any], Any]:
        whole = make(aggregator, *of, **more)
        return lambda is_, state: whole(is_, state) if aggregator in state._new_widget_state.states else is_

    return made


class LateLoop(asyncio.SelectorEventLoop):
    """An event loop that opens no descriptor before it runs."""

    def __init__(self) -> None:
        super().__init__(getattr(selectors, "PollSelector", selectors.SelectSelector)())

    def _make_self_pipe(self) -> None:
        self._csock = None

    def _close_self_pipe(self) -> None:
        if self._csock is not None:
            super()._close_self_pipe()

    def run_forever(self) -> None:
        """Run, as ever, with what wakes the loop up."""
        if self._csock is None:
            super()._make_self_pipe()  # type: ignore[misc]
        super().run_forever()


def keeping(request: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Ask for a run; what was pressed for the run before comes along if that has not come to it yet.

    Streamlit stops the thread of the run before and forgets what it was for: a click that something else follows
    within a few milliseconds would be lost.
    """

    def asked(session: Any, state: Any) -> None:
        runner = session._scriptrunner
        if runner is not None and state is not None and not state.fragment_id:
            requests, kinds, before = runner._requests, found(f"{_REQUESTS}:ScriptRequestType"), None
            with requests._lock:
                data = requests._rerun_data
                if requests._state is not kinds.STOP and data is not getattr(requests, "dispatched", None):
                    requests._state, before = kinds.STOP, data.widget_states  # that run leaves it to this one
            if before is not None:
                state.widget_states.CopyFrom(found(_COALESCE)(before, state.widget_states))
        request(session, state)

    return asked


def dispatching(_: Callable[..., None]) -> Callable[..., None]:
    """Call back for what was pressed, unless a later run does; Streamlit would first look whether the run goes on."""

    def dispatched(state: Any, fresh_widget_states: Any, **more: Any) -> None:
        context = found(f"{_CONTEXT}(suppress_warning)")(suppress_warning=True)
        requests = None if context is None else context.script_requests
        if requests is not None:
            kinds = found(f"{_REQUESTS}:ScriptRequestType")
            with requests._lock:
                if requests._state is kinds.CONTINUE:
                    requests.dispatched = requests._rerun_data
                stopped = requests._state is kinds.STOP
            if stopped:
                state._yield_callback()  # which ends the run
        with state._lock:
            state._state.on_script_will_rerun(fresh_widget_states, **more)

    return dispatched


def _late(module: Any) -> Any:
    """Each session, also one that is gone and kept for a while, has a loop with three descriptors that never runs."""
    return SimpleNamespace(**{**vars(module), "new_event_loop": LateLoop})


# What makes the replacement of each of the first names that a use relies on.
REPLACED: Final[dict[Use, tuple[Callable[[Any], Any], ...]]] = {
    Use("the server asks the internet for its address at its start and for visitors it does not know, who wait", (
        "streamlit.net_util:get_external_ip()",
    )): (_no_address,),
    Use("the first visitor may be told that a page was not found", (
        "streamlit.runtime.pages_manager:PagesManager.uses_pages_directory",
    )): (_no_pages,),
    Use("the log has remarks on caches that are filled before anybody comes", (
        "streamlit.runtime.scriptrunner_utils.script_run_context:_LOGGER",
    )): (_quiet,),
    Use("a redraw takes about 5 % longer", (
        "streamlit.components.v2.bidi_component.main:make_bidi_component_presenter"
        "(aggregator_id, component_id, allowed_state_keys)",
        f"{_STATE}:SessionState._new_widget_state", f"{_STATE}:WStates.states",
    )): (briefly,),
    Use("each rerun reads all options of the look", (
        "streamlit.runtime.app_session:_populate_theme_msg(msg, section)",
    )): (once,),
    Use("a page's messages are sent one by one, which takes a tenth longer", (
        "streamlit.runtime.app_session:AppSession.flush_browser_queue(self)",
        "streamlit.runtime.runtime:Runtime._send_message(self, session_info, msg)",
    )): (together, each),
    Use("a click is lost if the page asks for something else before its run has begun", (
        "streamlit.runtime.app_session:AppSession.request_rerun(self, client_state)",
        f"{_SAFE}.on_script_will_rerun(self, fresh_widget_states, replay_trigger_states, replay_trigger_values, "
        "is_history_navigation)", f"{_SAFE}._yield_callback", f"{_SAFE}._lock", f"{_SAFE}._state",
        f"{_SCRIPT}.script_requests", f"{_CONTEXT}(suppress_warning)",
        "streamlit.runtime.app_session:AppSession._scriptrunner",
        "streamlit.runtime.scriptrunner.script_runner:ScriptRunner._requests", _COALESCE,
        *(f"{_REQUESTS}:ScriptRequests._{name}" for name in ("lock", "state", "rerun_data")),
        f"{_REQUESTS}:ScriptRequestType",
    )): (keeping, dispatching),
    Use("each visitor has three more files open", (
        "streamlit.runtime.app_session:asyncio",
        *(f"asyncio:SelectorEventLoop._{name}_self_pipe(self)" for name in ("make", "close")),
    )): (_late,),
}  # fmt: skip


def read_settings(app: Path) -> None:
    """Take the settings beside an app's script, as `streamlit run` does."""
    if is_on(SETTINGS):
        setattr(*_at(SETTINGS.relies[0]), str(app))
        found(SETTINGS.relies[1])(force_reparse=True)


def begin() -> None:
    """Replace what is replaced, and have the log say what is off; to be called once, before there is a visitor."""
    for use, makers in REPLACED.items():
        if is_on(use):
            for name, make in zip(use.relies, makers, strict=False):
                setattr(*_at(name), make(found(name)))
    for use in (SCRIPT, UPLOADS, PAGE):
        is_on(use)


@cache
def is_on(use: Use) -> bool:
    """Whether something private may be used; the log says why not, once."""
    if why := problem(use):
        _LOG.warning("A private part of Streamlit is not used (%s): %s.", why, use.lost)
    return not why


def problem(use: Use) -> str:
    """Why something private may not be used; "" if it may."""
    if os.environ.get(VARIABLE) == "off":
        return f"{VARIABLE}=off"
    if not st.__version__.startswith(TESTED):
        return f"Streamlit is {st.__version__}, tested is {TESTED}*"
    return next((f"{name} is not as it was" for name in use.relies if not _is_there(name)), "")


def _is_there(name: str) -> bool:
    if ":" not in name:
        return name.encode() in _script_of_page()
    try:
        owner, last = _at(name)
        if "(" in name:
            return name.endswith(f"({', '.join(signature(getattr(owner, last)).parameters)})")
        if hasattr(owner, last) or last in getattr(owner, "__annotations__", {}):
            return True
        return last in owner.__init__.__code__.co_names  # an attribute of each object
    except (AttributeError, ImportError, TypeError, ValueError):
        return False


def _at(name: str) -> tuple[Any, str]:
    """What something private is an attribute of, and what it is called there."""
    module, _, path = name.partition("(")[0].partition(":")
    *above, last = path.split(".")
    return reduce(getattr, above, import_module(module)), last


@cache
def found(name: str) -> Any:
    """Something private by its name."""
    return getattr(*_at(name))


@cache
def _script_of_page() -> bytes:
    return b"".join(path.read_bytes() for path in Path(st.__file__).parent.glob("static/static/js/index.*.js"))


@cache
def _context() -> Callable[..., Any]:
    return found(_CONTEXT) if is_on(SCRIPT) else lambda **_: None


def _script() -> Any:
    """What Streamlit knows of the script that this thread runs; None outside of scripts."""
    return _context()(suppress_warning=True)


def session_id() -> str | None:
    """Whose script this thread runs: a session, which is a tab; None outside of scripts."""
    if (script := _script()) is not None:
        return script.session_id
    return None if is_on(SCRIPT) else st.session_state.setdefault("visitor", uuid.uuid4().hex)


def session_state() -> Any:
    """What the session keeps, three times as fast as st.session_state; None outside of scripts."""
    if (script := _script()) is not None:
        return script.session_state
    return None if is_on(SCRIPT) else st.session_state


def in_fragment() -> bool:
    """Whether a part of the page is drawn alone, without what stands around it."""
    return bool(getattr(_script(), "fragment_ids_this_run", None))


def as_for_all_pages() -> AbstractContextManager[None]:
    """What the script of all pages has drawn stays while another page opens; what a page has drawn goes first."""
    script = _script()
    return nullcontext() if script is None else script.run_with_active_hash(script.pages_manager.main_script_hash)


def allow_hosts(hosts: list[str]) -> None:
    """Accept WebSockets of more hosts; where any is accepted, of these alone."""
    if hosts and is_on(HOSTS):
        found(HOSTS.relies[0])("server.allowedHosts", [*st.get_option("server.allowedHosts"), *hosts])


def runs(session: str) -> bool:
    """Whether a session is here."""
    return bool(found(_RUNTIME).instance().is_active_session(session))


def uploaded() -> list[tuple[str, Any]]:
    """The files that Streamlit has in memory, each with its session."""
    storage = getattr(found(_RUNTIME).instance().uploaded_file_mgr, "file_storage", {})
    return [(session, record) for session, records in list(storage.items()) for record in list(records.values())]


def forget_upload(session: str, file_id: str) -> None:
    """Have Streamlit let go of a file."""
    if is_on(UPLOADS):
        found(_RUNTIME).instance().uploaded_file_mgr.remove_file(session, file_id)


# ------------------------------------------------------------------------------------------------ parts of its page

_TEST_IDS: Final = {
    "skeleton": "AppSkeleton", "skip": "SkipToContent", "header": "Header", "main-menu": "MainMenu",
    "unfold": "ExpandSidebarButton", "sidebar": "Sidebar", "sidebar-content": "SidebarContent",
    "fold": "SidebarCollapseButton", "side-head": "SidebarHeader",
    "side-content": "SidebarUserContent", "main": "Main", "main-block": "MainBlockContainer", "dialog": "Dialog",
    "layout": "LayoutWrapper", "vertical": "VerticalBlock", "horizontal": "HorizontalBlock", "column": "Column",
    "element": "ElementContainer", "waiting": "Skeleton", "alert": "Alert", "exception": "Exception",
    "expander": "Expander", "markdown": "MarkdownContainer", "caption": "CaptionContainer", "code": "Code",
    "icon": "IconMaterial", "hint": "TooltipIcon", "table": "DataFrame", "still-table": "Table",
    "metric": "MetricValue", "metric-label": "MetricLabel", "label": "WidgetLabel", "primary": "BaseButton-primary",
    "primary-submit": "BaseButton-primaryFormSubmit", "popover-button": "PopoverButton", "checkbox": "Checkbox",
    "radio": "Radio", "select": "Selectbox", "tags": "MultiSelectTagsContainer", "slider": "Slider",
    "slider-value": "SliderThumbValue",
}  # fmt: skip
_PARTS: Final = {name: f'[data-testid="st{test_id}"]' for name, test_id in _TEST_IDS.items()} | {
    "sized": '[data-testid="stElementContainer"][width$="px"]',
    "list": '[role="listbox"][data-testid]',
    "app": ".stApp", "component": ".stBidiComponent",
    "number": ".stNumberInput", "text": ".stTextInput",
    # of the sidebar, and of the app
    "folded": '[data-collapsed="true"]', "unfolded": '[data-collapsed="false"]',
    "known": "[data-test-script-state][data-test-connection-state]",
    "runs": '[data-test-script-state="running"]', "rests": '[data-test-script-state="notRunning"]',
    "connected": '[data-test-connection-state="CONNECTED"]',
}  # fmt: skip

# Tells Streamlit that the app is above a page; else it finds out itself.
ABOVE: Final = '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location).href };</script>'


def page_selectors() -> dict[str, str]:
    """What Streamlit calls each part; nothing is ever found where that is off."""
    return _PARTS if is_on(PAGE) else dict.fromkeys(_PARTS, ":not(*)")


def styled(rules: str) -> str:
    """Rules of style, or any text with selectors, with the parts of the page as Streamlit calls them."""
    there = page_selectors()
    return re.sub(r":--([\w-]+)", lambda part: there[part[1]], rules)
