"""`Source` of models in the hub's cache: their list on the page Open a checkpoint, and a box to fetch one by name."""

import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final

from glassformer.extensions.hub.hub_cache import CachedModel, cached, entry_of, is_available, is_name, models, pull
from glassformer.extensions.importers.third_party_models import ImportersSource
from glassformer.server import server_options
from glassformer.shared import drawing
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import frame, st
from glassformer.state import session
from transformer.checkpoint.free_memory import Progress
from transformer.checkpoint.listing import Entry
from transformer.errors import CheckpointError
from transformer.files.untrusted_folder import hub_name
from transformer.i18n import Sentence, joined, say, say_n

CHOICE, NAME, FETCH, FETCHED, REFUSED = "hub_choice", "hub_name", "hub_fetch", "hub_fetched", "hub_refused"
EXAMPLE: Final = "Helsinki-NLP/opus-mt-zh-en"
LOOK_AGAIN_SECONDS: Final = 10
DRAW_AGAIN_SECONDS: Final = 0.2
_ONE_AT_A_TIME = threading.Lock()  # a line to the network is not faster for two


class HubSource(ImportersSource):
    """Models in the hub's cache, by their names on the hub; where the operator allows it, they are fetched."""

    def at(self, name: str) -> Entry | None:
        """One that is in the cache."""
        folder = cached(name) if _mode() != "off" and is_name(name) else None
        found = None if folder is None else entry_of(name, folder)
        return found if found is not None and found.error is None else None

    def opens(self, entry: Entry) -> bool:
        """Those of the cache, of which some are checkpoints of this program."""
        return hub_name(entry.folder) is not None

    def brought(self, name: str) -> bool:
        """All of them."""
        return is_name(name)

    def arrive(self) -> None:
        """The one that was fetched or chosen last."""
        session.arrive(FETCHED)

    def offer(self, entry: Entry | None) -> None:
        """The list of the cache, and the box."""
        if (mode := _mode()) == "off":
            return
        listed = _models()
        with st.expander(say("Models of the Hugging Face Hub"), icon=":material/cloud_download:"):
            if mode == "fetch":
                _fetch_box()
            if listed:
                _list(listed)
            elif mode == "cache":
                st.caption(say("The cache holds no models. In a terminal, `glassformer pull NAME` fetches one."))

    def label(self, entry: Entry) -> str | None:
        """Where it is from."""
        return say("{name} (from the hub)", name=entry.name) if self.opens(entry) else None

    def explain(self) -> None:
        """Nothing: they lie in no folder of checkpoints."""

    def gone(self, name: str, instead: str) -> Sentence | None:
        """It was never fetched, or the cache was emptied."""
        if not is_name(name):
            return None
        return say(
            "“{name}” is not among the models that this server has from the hub; {shown} is shown instead. "
            "`glassformer pull {name}` fetches it.",
            name=name,
            shown=instead,
        )


SOURCE = HubSource()


def _mode() -> server_options.Hub:
    return server_options.hub() if is_available() else "off"


@st.cache_resource(ttl=LOOK_AGAIN_SECONDS, show_spinner=False)
def _models() -> list[CachedModel]:
    """The list, for all visitors; a cache of a hundred models is not looked through at every click."""
    return models()


def _list(listed: list[CachedModel]) -> None:
    """Draw what can be opened as a choice, and below it all, with the reason where one cannot."""
    opens = {one.entry.name: one for one in listed if one.entry.error is None}
    sizes = {name: say("{n:,.0f} MB", n=one.n_bytes / 1e6) for name, one in opens.items()}
    if opens:
        st.selectbox(
            say("In the cache"),
            list(opens),
            index=None,
            key=CHOICE,
            placeholder=say("Choose a model"),
            format_func=lambda name: joined(" · ", filter(None, (name, opens[name].family, sizes[name]))),
            on_change=_choose,
        )
    others = [one for one in listed if one.entry.error is not None]
    if others:
        st.caption(say_n("{n} model does not open:", "{n} models do not open:", len(others)))
        why = [drawing.with_code(one.entry.error or "") for one in others]
        st.table(frame({say("Why"): why}, index=[drawing.plain(one.entry.name) for one in others]))


def _choose() -> None:
    st.session_state[FETCHED] = st.session_state.pop(CHOICE, None)


def _fetch_box() -> None:
    """Draw the box for a name, and fetch what is asked for."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(say("Name on the hub"), key=NAME, placeholder=EXAMPLE).strip()
        button = st.container(width="content")
    problem, done = st.empty(), False
    with pressed(button.button, say("Fetch"), key=FETCH, about="") as asked:
        if asked and name:
            done = _fetch(name)
    if done:
        st.rerun()
    if (refused := st.session_state.get(REFUSED)) is not None:
        problem.error(drawing.with_code(refused))


def _fetch(name: str) -> bool:
    """Fetch a model while a bar says how far it is; whether it is there."""
    told = [0, 0]

    def see(so_far: int, whole: int) -> None:
        told[:] = so_far, whole

    fetching: Future[Path] = Future()
    threading.Thread(target=_work, args=(name, fetching, see), daemon=True).start()
    place = st.empty()
    while not fetching.done():
        so_far, whole = told
        text = say("Fetching {name}", name=drawing.plain(name))
        if whole:
            said = say("{done:,} of {whole:,} MB", done=round(so_far / 1e6), whole=round(whole / 1e6))
            text = joined(": ", [text, said])
        place.progress(min(so_far / max(whole, 1), 1.0), text)
        wait([fetching], DRAW_AGAIN_SECONDS)
    place.empty()
    st.session_state.pop(REFUSED, None)
    try:
        fetching.result()
    except CheckpointError as error:
        st.session_state[REFUSED] = error.sentence
        return False
    _models.clear()
    st.session_state[FETCHED] = name
    return True


def _work(name: str, fetching: "Future[Path]", see: Progress) -> None:
    try:
        with _ONE_AT_A_TIME:
            fetching.set_result(pull(name, progress=see, token=False))  # nothing private of the operator's
    except BaseException as error:  # raised where it is waited for
        fetching.set_exception(error)
