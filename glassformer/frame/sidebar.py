"""The sidebar: which checkpoint or which given maps, how it decodes, what a class may see, and the language."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from glassformer.frame.source_box import head
from glassformer.runs import loading, sources
from glassformer.runs.open_run import address, publish
from glassformer.runs.visible_trace import no_head, no_layer
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import global_params, language, session
from glassformer.state.link import DEFAULT_NEW, WAYS
from glassformer.state.view import MAIN
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.snapshot_names import at_step, split
from transformer.errors import GlassformerError, UnansweredError
from transformer.i18n import Sentence, languages, name_of, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.labelled_maps import LabelledMaps
from transformer.runs.query import MAX_NEW, MAX_SOURCE_CHARACTERS

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
    """Remember which checkpoint an address means that names none, and which one a bare address means here.

    Addresses that say a sentence or a checkpoint's hash mean the same for everybody, and so do lessons. In a room a
    bare one means its teacher's checkpoint and sentence. Of what is `usable`, the default stands first.
    """
    names, state = list(usable), st.session_state
    spoken, guidance = language.of_browser(), global_params.guidance()
    read = (name for name, entry in usable.items() if entry.code and entry.code == spoken)
    bare = names[0] if guidance.follows or guidance.is_set else next(read, names[0])
    state[session.DEFAULT_MODEL], state[session.BARE_MODEL] = names[0], bare
    is_bare = state.get(session.SOURCE) is None and not session.standing(MAIN).revision
    if not state.get(session.MODEL):
        state[session.MODEL] = bare if is_bare else names[0]
        if is_bare and guidance.bare.get("model") in usable:
            state.update({session.MODEL: guidance.bare["model"], session.SOURCE: guidance.bare.get("src")})


ONLY_MAPS = say("These are attention maps without a model. Open the Attention page to see them.")
NEEDS_A_MODEL = say(
    "This page needs a model, but you chose attention maps without one. View the maps on the Attention page, or "
    "choose a checkpoint in the sidebar."
)
_Opened = TypeVar("_Opened")
HOW_NAMES = {"greedy": say("Greedy"), "beam": say("Beam"), "sampling": say("Sampling")}


def sidebar(title: str = "", *, shows_run: bool = False, chooses_head: bool = False, folds: bool = False) -> Checkpoint:
    """Draw the sidebar and open the checkpoint that it names; stops the page if there is none.

    The title is that of a page that has not drawn it yet: it stands above the reason why there is none. Where the
    page `shows_run`, decoding and what is hidden can be chosen, folded if `folds`, as little or nothing of them is
    seen; where it `chooses_head`, also the decoder layer and head whose attention is shown.
    """
    found = checkpoint_or_maps(title, shows_run=shows_run, chooses_head=chooses_head, folds=folds)
    if isinstance(found, LabelledMaps):
        _needs_a_model(title, found)
    return found


def checkpoint_or_maps(
    title: str = "", *, shows_run: bool = False, chooses_head: bool = False, folds: bool = False
) -> Checkpoint | LabelledMaps:
    """`sidebar` for a page that can draw given maps, too."""
    entry = chosen_entry(title)
    if not sources.has_model(entry):
        return _open_maps(entry.name, title)
    checkpoint = _open(entry, title)
    for blocks in page_blocks():
        blocks.opened(checkpoint)
    with st.sidebar:
        if not cover_box.waits():  # a card may say what becomes of its checkpoint, and why
            st.caption(drawing.plain(checkpoint.card.description))
        _mention_broken()
        parts = anatomy(checkpoint.config)
        if shows_run and parts.writes:
            with _block(say("Decoding"), folds=folds):
                _decoding(checkpoint)
            if chooses_head:
                _attention(parts.stack("decoder").n_layers, checkpoint.config.of("decoder").n_heads)
            more = [draw for blocks in page_blocks() if (draw := blocks.in_class()) is not None]
            with _block(say("In class"), folds=folds and not session.view().guess and not more):
                _class_room(more)
    return checkpoint


def _block(title: str, *, folds: bool) -> AbstractContextManager[object]:
    """A block of the sidebar under its heading."""
    if folds:
        return st.expander(title)
    st.subheader(title, divider=False)
    return nullcontext()


def chosen_entry(title: str = "") -> Entry:
    """Draw the sidebar's choice of a checkpoint, and open nothing; stops the page if there is none."""
    usable = loading.choosable()
    if not usable:
        _end(title, say("No checkpoint can be opened. The reasons are on the Checkpoints page."))
    asked = _settle_moment(st.session_state.get(session.MODEL) or "")
    if (folder := sources.folder(asked)) is not None:
        usable[folder.name] = folder
    if asked not in usable and (typed := sources.at(asked)) is not None:
        usable[asked] = typed
    labels = {name: _labelled(entry) for name, entry in usable.items()}
    settle_defaults(usable)
    if asked not in usable and (snapshot := loading.found(asked)) is not None:
        whole = split(asked)  # in whose place it stands, under its name
        labels = {asked if whole and name == whole[0] else name: label for name, label in labels.items()}
        usable[asked] = snapshot
    _settle_model(list(labels))
    if not menu.is_there():  # a page alone, as tests run it: nothing stands beside the name
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


def _labelled(entry: Entry) -> str:
    """An entry in the choice of checkpoints."""
    return sources.label(entry) or say("{title} ({name})", title=entry.title or entry.name, name=entry.name)


def _open_maps(name: str, title: str) -> LabelledMaps:
    maps = _opened(
        name, title, lambda: loading.open_maps(name), say("The file with the attention maps cannot be read.")
    )
    with st.sidebar:
        st.caption(ONLY_MAPS)
        _mention_broken()
    return maps


def _needs_a_model(title: str, maps: LabelledMaps) -> NoReturn:
    """Say on a page that needs a model why it is empty, and keep the choice for the other pages."""
    if title:
        head(title)
    st.info(NEEDS_A_MODEL, icon=":material/info:")
    link = address(maps, session.asked())
    menu.link("attention", say("Look at these maps"), link, icon=":material/visibility:")
    publish(maps)
    st.stop()


def _open(entry: Entry, title: str) -> Checkpoint:
    def opening() -> Checkpoint:
        source = sources.opens(entry)
        if source is None:
            return loading.open_checkpoint(entry)
        try:
            return source.open(entry)
        except UnansweredError as error:
            source.ask(entry, title, error)

    return _opened(entry.name, title, opening, say("The checkpoint's folder cannot be read."))


def _opened(name: str, title: str, opening: Callable[[], _Opened], unread: Sentence) -> _Opened:
    """What was opened; if that fails it is said in the page why, as the sidebar may be closed."""
    try:
        return opening()
    except (GlassformerError, OSError) as error:
        why = error.sentence if isinstance(error, GlassformerError) else unread
        said = say("{name} cannot be opened. {why} Choose another checkpoint.", name=name, why=why)
        _end(title, drawing.plain(said))


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


def _decoding(checkpoint: Checkpoint) -> None:
    controls.keep_label(session.HOW, HOW_NAMES.values())
    how = st.segmented_control(
        say("How the next piece is chosen"),
        list(HOW_NAMES),
        key=session.HOW,
        format_func=lambda name: HOW_NAMES[name],
        required=True,
        on_change=session.new_run,
        persist_state=KEEP,
    )
    if how in WAYS:
        _settings(how)
    most = min(MAX_NEW, checkpoint.config.max_len)
    _limit_output(checkpoint, most)
    st.slider(
        say("Maximum output length"),
        1,
        most,
        key=session.MAX_NEW,
        on_change=session.new_run,
        persist_state=KEEP,
        help=say(
            "The source may have at most {characters:,} characters and {pieces} pieces.",
            characters=MAX_SOURCE_CHARACTERS,
            pieces=checkpoint.config.max_len,
        ),
    )


def _attention(n_layers: int, n_heads: int) -> None:
    """Draw the choice of a layer and a head, or of all together."""
    view = session.view()
    for asked, count, note in ((view.layer, n_layers, no_layer), (view.head, n_heads, no_head)):
        if asked is not None and asked >= count:
            session.add_note(note(asked, count))
    st.subheader(say("Attention shown"), divider=False)
    controls.layer_and_head(MAIN, say("Decoder layer"), n_layers, n_heads)


def _class_room(more: Iterable[Callable[[], None]]) -> None:
    controls.switch(
        controls.field(MAIN, "guess"),
        say("Hide candidates until I guess"),
        help=say("The next piece stays hidden until someone guesses it."),
    )
    for draw in more:
        draw()


_SETTINGS: Final[dict[str, tuple[str, float, str | None]]] = {
    "size": (say("Beams"), 1, None),
    "length_penalty": (
        say("Length penalty"),
        0.1,
        say("At 0, only plain log-probabilities are compared; higher values favour longer outputs."),
    ),
    "temperature": (
        say("Temperature"),
        0.05,
        say("Values below 1 sharpen the distribution; values above 1 flatten it."),
    ),
    "top_k": (say("Top-k"), 1, say("0 keeps all pieces.")),
    "top_p": (say("Top-p"), 0.01, say("1 keeps all pieces.")),
    "seed": (say("Seed"), 1, say("The same seed always gives the same output.")),
}
"""Of each number of a way of decoding its label, the step of its widget, and what it says."""


def _settings(how: str) -> None:
    """Draw the numbers of a way of decoding; another one is another run."""
    kind, settings = WAYS[how]
    for one in settings:
        label, step, help = _SETTINGS[one.field]
        st.session_state.setdefault(one.key, getattr(kind, one.field))
        widget = st.number_input if one.field in ("top_k", "seed") else st.slider
        widget(
            label, one.least, one.most, step=step, key=one.key, on_change=session.new_run, persist_state=KEEP, help=help
        )
    if how == "sampling":
        st.button(say("Draw again"), on_click=_new_seed, icon=":material/casino:", width="stretch")


def _new_seed() -> None:
    st.session_state[session.SEED] = random.randrange(10_000)
    session.new_run()


def _limit_output(checkpoint: Checkpoint, most: int) -> None:
    wanted = st.session_state.get(session.MAX_NEW, DEFAULT_NEW)
    if wanted > most and wanted != DEFAULT_NEW:
        said = say(
            "Up to {wanted} pieces were requested, but {name} writes at most {most}.",
            wanted=wanted,
            name=checkpoint.name,
            most=most,
        )
        session.add_note(said)
    st.session_state[session.MAX_NEW] = min(max(wanted, 1), most)
