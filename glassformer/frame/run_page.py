"""Page about a run by one declaration (`run_page`): sidebar with checkpoint or maps, defaults, language choice.

The sidebar has which checkpoint or which given maps, how it decodes, what a class may see, and the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from glassformer.frame.decoding import in_class, limit_output
from glassformer.frame.source_box import head, of_a_sentence
from glassformer.runs import loading, sources
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.picture import Page
from glassformer.runs.run_address import address, publish
from glassformer.server import server_options
from glassformer.shared import cover_box, drawing, menu
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import global_params, language, session
from glassformer.state.view import MAIN
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.snapshot_names import at_step, split
from transformer.errors import GlassformerError, UnansweredError
from transformer.i18n import Sentence, languages, name_of, say, say_n
from transformer.model.anatomy import Kind, anatomy
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

LANGUAGE: Final = "language_choice"


def language_choice() -> None:
    """Draw the choice of a language, if there is one."""
    if not language.menu_is_needed():
        return
    st.session_state[LANGUAGE] = language.current()
    st.selectbox(
        say("Language"),
        languages(),
        key=LANGUAGE,
        format_func=name_of,
        on_change=lambda: language.choose(st.session_state[LANGUAGE]),
        label_visibility="collapsed",
    )


def settle_defaults(usable: Mapping[str, Entry]) -> None:
    """Remember the default checkpoint of a URL without one, and of a bare URL.

    A URL with a sentence or a checkpoint's hash means the same for everybody, and so do lessons. In a room a bare URL
    means the teacher's checkpoint and sentence. The default is the first of `usable`.
    """
    names, state = list(usable), st.session_state
    spoken, guidance = language.of_browser(), global_params.guidance()
    read = (name for name, entry in usable.items() if entry.code and entry.code == spoken)
    bare = names[0] if guidance.follows or guidance.is_set or server_options.opens_first() else next(read, names[0])
    state[session.DEFAULT_MODEL], state[session.BARE_MODEL] = names[0], bare
    is_bare = state.get(session.SOURCE) is None and not session.standing(MAIN).revision
    if not state.get(session.MODEL):
        state[session.MODEL] = bare if is_bare else names[0]
        if is_bare and guidance.bare.get("model") in usable:
            state.update({session.MODEL: guidance.bare["model"], session.SOURCE: guidance.bare.get("src")})


ONLY_MAPS = say("These are attention maps without a model. Open the Attention page to see them.")
NEEDS_A_MODEL = say(
    "This page needs a model, but you chose attention maps or a saved run, which have none. Look at them on the "
    "Attention page, or choose a checkpoint in the sidebar."
)
_Opened = TypeVar("_Opened")
Unopened = Callable[[Entry, Callable[[], NoReturn]], NoReturn]
"""Draws a page for a model with open questions; it calls the function, which asks them and stops the page."""


def sidebar(
    title: str = "", *, decodes: bool = False, of_run: bool = False, unopened: Unopened | None = None
) -> Checkpoint:
    """Draw the sidebar and open the checkpoint that it names; stops the page if there is none.

    A page `of_run` shows what a run has, so a saved run is enough for it.

    The title is that of a page that has not drawn it yet: it stands above the reason why there is none. A page that
    `decodes` has `glassformer.frame.decoding.decoding_line`; `unopened` is for one that says something before a model
    opens.
    """
    found = checkpoint_or_maps(title, decodes=decodes, unopened=unopened)
    if isinstance(found, LabelledMaps) or (found.only_query is not None and not of_run):
        _needs_a_model(title, found)
    return found


def checkpoint_or_maps(
    title: str = "", *, decodes: bool = False, unopened: Unopened | None = None
) -> Checkpoint | LabelledMaps:
    """`sidebar` for a page that can draw given maps, too."""
    entry = chosen_entry(title)
    if not sources.has_model(entry):
        return _open_maps(entry.name, title)
    checkpoint = _open(entry, title, unopened)
    if anatomy(checkpoint.config).writes:
        limit_output(checkpoint)
    for blocks in page_blocks():
        blocks.opened(checkpoint)
    with st.sidebar:
        if not cover_box.waits():  # a card may say what becomes of its checkpoint, and why
            st.caption(drawing.plain(checkpoint.card.description))
        _mention_broken()
        if not decodes and anatomy(checkpoint.config).writes:
            in_class(hides=session.view().guess)
    return checkpoint


def chosen_entry(title: str = "") -> Entry:
    """Draw the sidebar's choice of a checkpoint, and open nothing; stops the page if there is none."""
    asked = _settle_moment(st.session_state.get(session.MODEL) or "")
    usable = loading.choosable(asked)
    if not usable:
        _end(title, say("No checkpoint can be opened. The reasons are on the Checkpoints page."))
    labels = {
        name: sources.label(entry) or say("{title} ({name})", title=entry.title or entry.name, name=entry.name)
        for name, entry in usable.items()
    }
    settle_defaults(usable)
    if asked not in usable and (snapshot := loading.found(asked)) is not None:
        whole = split(asked)  # in whose place it stands, under its name
        labels = {asked if whole and name == whole[0] else name: label for name, label in labels.items()}
        usable[asked] = snapshot
    _settle_model(list(labels))
    if not menu.is_there():  # tests run a page without the menu
        with st.sidebar:
            language_choice()
    with menu.above():
        name = st.selectbox(
            say("Checkpoint"),
            list(labels),
            key=session.MODEL,
            format_func=lambda name: labels.get(name, name),
            on_change=session.change_model,
            persist_state=KEEP,
        )
        for blocks in page_blocks():
            blocks.under_choice(name)
    return usable[name]


def _settle_moment(asked: str) -> str:
    """The name; the nearest snapshot, else the checkpoint, in the place of a snapshot that is not there."""
    named, whole = split(asked), loading.whole(asked)
    if named is None or whole is None or loading.found(asked) is not None:
        return asked
    near = min(loading.moments(whole)[0], key=lambda moment: abs(moment.step - named[1]), default=None)
    name = whole.name if near is None else at_step(whole.name, near.step)
    session.change_moment(name)
    session.add_note(say("There is no snapshot “{asked}”; {shown} is shown instead.", asked=asked[:60], shown=name))
    return name


def _open_maps(name: str, title: str) -> LabelledMaps:
    maps = _opened(
        name, title, lambda: loading.open_maps(name), say("The file with the attention maps cannot be read.")
    )
    with st.sidebar:
        st.caption(ONLY_MAPS)
        _mention_broken()
    return maps


def _needs_a_model(title: str, found: Checkpoint | LabelledMaps) -> NoReturn:
    """Say on a page that needs a model why it is empty, and keep the choice for the other pages."""
    if title:
        head(title)
    st.info(NEEDS_A_MODEL, icon=":material/info:")
    label = say("Look at these maps") if isinstance(found, LabelledMaps) else say("Look at this run")
    menu.link("attention", label, address(found, session.asked()), icon=":material/visibility:")
    publish(found)
    st.stop()


def _open(entry: Entry, title: str, unopened: Unopened | None) -> Checkpoint:
    def opening() -> Checkpoint:
        source = sources.opens(entry)
        if source is None:
            return loading.open_checkpoint(entry)
        try:
            return source.open(entry)
        except UnansweredError as error:
            if unopened is None:
                source.ask(entry, title, error)
            head(title)
            unopened(entry, partial(source.ask, entry, "", error))

    name = entry.title if ":" in entry.name else entry.name  # before a colon a token follows
    return _opened(name, title, opening, say("The checkpoint's folder cannot be read."))


def _opened(name: str, title: str, opening: Callable[[], _Opened], unread: Sentence) -> _Opened:
    """What was opened; if that fails it is said in the page why, as the sidebar may be closed."""
    try:
        return opening()
    except (GlassformerError, OSError) as error:
        why = error.sentence if isinstance(error, GlassformerError) else unread
        said = say("{name} cannot be opened. {why} Choose another checkpoint.", name=name, why=why)
        _end(title, drawing.with_code(said))


def _end(title: str, why: str) -> NoReturn:
    if title:
        head(title)
    st.error(why)
    st.stop()


def _settle_model(names: list[str]) -> None:
    """Put the default in the place of a checkpoint that is not there."""
    name = st.session_state.get(session.MODEL)
    if name in names:
        return
    if name and (said := sources.gone(name, names[0])) is not None:
        session.add_note(said)
    elif name:
        asked = name[:60]
        session.add_note(
            say(
                "The checkpoint “{asked}” does not exist or cannot be opened; {shown} is shown instead.",
                asked=asked,
                shown=names[0],
            )
        )
        session.stand(MAIN, revision="", forced=(), hypothesis=0, interventions=())
        st.session_state[session.SOURCE] = None
    st.session_state[session.MODEL] = names[0]


def _mention_broken() -> None:
    broken = sum(entry.error is not None for entry in loading.entries())
    if broken:
        said = say_n(
            "{n} folder or file cannot be opened: see the Checkpoints page.",
            "{n} folders or files cannot be opened: see the Checkpoints page.",
            broken,
        )
        st.caption(said)


# ------------------------------------------------------------------------------------------------ the page


def run_page(
    page: Page,
    draw: Callable[[OpenRun], object],
    *,
    kind: Callable[[Checkpoint], Kind] | None = None,
    decodes: bool = False,
) -> None:
    """Draw the page; `decodes` is as for `sidebar`.

    With `kind` the checkpoint, and not the view, says of which attention layer and head are.
    """
    session.begin(page.path)
    checkpoint = sidebar(page.title, decodes=decodes, of_run=True)
    of_a_sentence(page.title, checkpoint, partial(below, page, draw, kind))


@st.fragment
def below(
    page: Page, draw: Callable[[OpenRun], object], kind: Callable[[Checkpoint], Kind] | None, checkpoint: Checkpoint
) -> None:
    """Draw what is below the source box, if there is a run; a step or a click runs this again, alone."""
    run = open_run(checkpoint, kind=kind(checkpoint) if kind else page.kind(session.view()))
    if run is not None:
        attempt(partial(draw, run))  # a saved run has no model that a page may need
        for blocks in page_blocks():
            blocks.below_run(page, run)
        run.publish()
