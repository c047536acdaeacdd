"""Page header: title, source text box, examples, and the suggestion of a checkpoint for another language.

A typed sentence switches the checkpoint automatically, with a button back. Where a link, a room, a lesson or an upload
determines the checkpoint, the other one is only offered.

Each checkpoint's examples say which letters it reads. Letters distinguish Chinese from English; words distinguish
English from French: few words of the other language are whole in the vocabulary.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from glassformer.charts.theme import shortened
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.run_address import publish
from glassformer.shared import cover_box, drawing, page_style
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import global_params, session
from transformer.checkpoint.listing import Entry
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint
    from transformer.text.tokenizer import AnyTokenizer


OFFER: Final = "offer"
UNDO: Final = "undo_switch"
_SWITCHED: Final = "switched"  # in the session
_IDEOGRAPHS: Final = "CJK"
_ENOUGH: Final = 0.5
_FEW, _MOST, _WORDS = 1 / 3, 2 / 3, range(3, 41)  # of a text's words, and of those of the examples; so many tell
_TO_FOLLOW: Final = "switch_to_follow"  # likewise: set until the whole page was drawn anew


class Switched(NamedTuple):
    """What a typed sentence has switched, from which checkpoint to which."""

    text: str
    before: str
    now: str


def typed() -> None:
    """Callback: the reader has typed another sentence."""
    session.new_run()
    state, usable = st.session_state, loading.usable()
    text, model = state.get(session.SOURCE) or "", state.get(session.MODEL) or ""
    here, guidance = loading.found(model), global_params.guidance()
    if here is None or guidance.follows or guidance.leads or guidance.is_set:
        return
    found = _reader(text, here.examples, usable, model)
    if found is not None:
        _read_with(found, text)
        state[_SWITCHED] = Switched(text, model, found)


def _read_with(model: str, text: str) -> None:
    """Callback: another checkpoint, and a sentence for it."""
    st.session_state[session.MODEL] = model
    session.change_model()
    st.session_state[session.SOURCE] = text
    follow_soon()


def follow_soon() -> None:
    """Callback: have `follow_switch` draw the whole page."""
    st.session_state[_TO_FOLLOW] = True


def offer(checkpoint: Checkpoint) -> None:
    """Draw what was switched and the way back, or the offer, if there is one to make."""
    state, usable = st.session_state, loading.usable()
    text, model = state.get(session.SOURCE) or "", state.get(session.MODEL)
    switched: Switched | None = state.get(_SWITCHED)
    if switched is not None and (switched.text, switched.now) == (text, model):
        now = usable[switched.now]
        said = say(
            "This looks like {language}, so the checkpoint {title} now reads it.",
            language=now.language,
            title=now.title,
        )
        _row(said, say("Undo"), UNDO, ":material/undo:", switched.before, text)
        return
    found = _reader(text, checkpoint.card.tried(), usable, checkpoint.name)
    if found is not None:
        other = usable[found]
        said = say("This looks like {language}, which this checkpoint does not read.", language=other.language)
        label = drawing.plain(say("Read it with {title}", title=other.title))
        _row(said, label, OFFER, ":material/swap_horiz:", found, text)
    elif (language := checkpoint.card.source_language) and is_strange(
        text, checkpoint.card.tried(), checkpoint.src_tokenizer
    ):
        told = say(
            "Most of these words are not tokens of the vocabulary, so this may not be {language}.", language=language
        )
        st.caption(drawing.plain(told))


def follow_switch(checkpoint: Checkpoint) -> None:
    """Draw the whole page, where a click or a sentence has switched to another checkpoint than this part draws."""
    if st.session_state.pop(_TO_FOLLOW, False) and st.session_state.get(session.MODEL) != checkpoint.name:
        st.rerun()


def _reader(text: str, here: Sequence[str], usable: Mapping[str, Entry], model: str) -> str | None:
    others = {name: entry.examples for name, entry in usable.items() if entry.language and name != model}
    return reader(text, here, others)


def _row(said: str, label: str, key: str, icon: str, model: str, text: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{OFFER}_row"):
        st.markdown(drawing.plain(said), width="content")
        st.button(label, key=key, icon=icon, on_click=_read_with, args=(model, text))


# ------------------------------------------------------------------------------------------------ letters


def scripts(text: str) -> Counter[str]:
    """How much of a text is written in each script, such as "LATIN": in words, or ideographs, which are as much."""
    found: Counter[str] = Counter()
    for script, letters in groupby(text, key=_script):
        if script:
            found[script] += len(list(letters)) if script == _IDEOGRAPHS else 1
    return found


def share(text: str, examples: Iterable[str]) -> float:
    """How much of a text is written as the examples are, from 0 to 1; 1 if nothing can be said of it."""
    written, read = scripts(text), scripts(" ".join(examples))
    if not written or not read:
        return 1.0
    return sum(count for script, count in written.items() if script in read) / written.total()


def reader(text: str, here: Sequence[str], others: Mapping[str, Sequence[str]]) -> str | None:
    """The first checkpoint that reads a text, by its examples; None if the current one reads it, or none does."""
    if share(text, here) >= _ENOUGH:
        return None
    fitting = (name for name, examples in others.items() if examples and share(text, examples) > _ENOUGH)
    return next(fitting, None)


def is_strange(text: str, examples: Iterable[str], tokenizer: AnyTokenizer) -> bool:
    """Whether few words of a text have their letters in one piece of a vocabulary, as most of the examples' have."""
    shares = list[float]()
    for words in (text.split(), " ".join(examples).split()):
        spelt = [word for word in words if any(map(str.isalpha, word))][: _WORDS[-1]]
        if len(spelt) < _WORDS[0]:
            return False
        pieces = ([tokenizer.piece(i) for i in tokenizer.encode(word).ids] for word in spelt)
        whole = [sum(any(map(str.isalpha, piece)) for piece in one) == 1 for one in pieces]
        shares.append(sum(whole) / len(spelt))
    return shares[0] < _FEW and shares[1] > _MOST


def _script(letter: str) -> str:
    """The first word of a letter's name says its script; empty if it is not a letter."""
    return unicodedata.name(letter, "").partition(" ")[0] if letter.isalpha() else ""


EXAMPLE_CHARACTERS: Final = 60
EXAMPLES: Final = "example_menu"
LONGEST: Final = 160  # characters of what maps are of; the Checkpoints page has the whole text


@st.fragment
def of_a_sentence(title: str, checkpoint: Checkpoint, draw: Callable[[Checkpoint], None]) -> None:
    """Draw a page about a sentence; another sentence draws it again, but not the sidebar and the menu beside it.

    `draw` draws what is below the source box; best a fragment itself, as a step need not draw the box again.
    """
    st.html(page_style.TO_SENTENCE)
    with st.container():  # an offer comes and goes: outside, it would move what is below, and a fragment is its place
        source_box(checkpoint, head(title))
    if cover_box.covered(cover_box.ALL):
        _pieces(checkpoint)
        cover_box.stands_for(cover_box.ALL)
        drawing.notes(session.take_notes())
        publish(checkpoint)
    else:
        draw(checkpoint)


def _pieces(checkpoint: Checkpoint) -> None:
    """Draw the pieces of the sentence, which a question is about, where all below them is covered."""
    source, tokenizer = st.session_state.get(session.SOURCE) or "", checkpoint.src_tokenizer
    encoded = attempt(lambda: tokenizer.encode(source)) if source.strip() else None
    if encoded is not None:
        pieces = [tokenizer.piece(i) for i in encoded.ids[: checkpoint.config.max_len]]
        cover_box.pieces({say("The sentence in tokens:"): pieces})


def head(title: str) -> AbstractContextManager[object]:
    """Draw the title of a page; returns the row that it begins, for `source_box`."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="small", key=page_style.HEAD)
    with row:
        st.title(title, anchor=False, width="content")
    return row


def head_without_run(title: str) -> None:
    """Draw the title of a page without a run, and what a run says elsewhere: changes, and notes on the address."""
    head(title)
    for blocks in page_blocks():
        blocks.under_title()
    drawing.notes(session.take_notes())


def given_head(title: str, maps: LabelledMaps) -> None:
    """Draw the title of a page, and under it the sentence and the model that the maps are of."""
    head(title)
    said = [say("These attention maps come from a file and are shown unchanged. No model is run.")]
    if maps.checkpoint:
        said.append(say("Model: {name}.", name=shortened(maps.checkpoint, limit=LONGEST)))
    if maps.sentence:
        said.append(say("Sentence: {text}", text=shortened(maps.sentence, limit=LONGEST)))
    st.caption(drawing.plain(joined(" ", said)))


def source_box(checkpoint: Checkpoint, row: AbstractContextManager[object]) -> None:
    """Draw the source box in the row that `head` made, and the checkpoint's examples in a menu."""
    follow_switch(checkpoint)
    if st.session_state.get(session.SOURCE) is None:
        st.session_state[session.SOURCE] = checkpoint.card.first_example()
    language = checkpoint.card.source_language
    label, go = _wording(checkpoint)
    with row:
        st.text_input(
            label,
            key=session.SOURCE,
            on_change=typed,
            placeholder=say("Type {language}, then press Enter", language=language)
            if language
            else say("Type a text, then press Enter"),
            label_visibility="collapsed",
            persist_state=KEEP,
        )
        _more()
        st.button(go, type="primary", key="translate")
        for blocks in page_blocks():
            blocks.in_source_row(checkpoint)
        if checkpoint.card.tried():
            _examples(checkpoint)
    offer(checkpoint)
    for blocks in page_blocks():
        blocks.under_source(checkpoint)


def _more() -> None:
    """Draw what unfolds the rest of the row on a telephone; there, who follows a class has the title alone.

    A class whose students have sentences of their own has boxes to type them into.
    """
    if global_params.guidance().types:
        said = escape(here(say("More: translate, change the model, examples")), quote=True)
        st.html(
            f'<details class="gf-more"><summary aria-label="{said}" title="{said}">⋯</summary></details>',
            width="content",
        )


def _wording(checkpoint: Checkpoint) -> tuple[str, str]:
    """What the box and its button are called: only a model with both stacks translates."""
    parts = anatomy(checkpoint.config)
    if not parts.reads:
        return say("Prompt"), say("Run")
    if parts.writes and checkpoint.card.source_code:
        return say("Sentence to translate"), say("Translate")
    return say("Input"), say("Run")


def _examples(checkpoint: Checkpoint) -> None:
    """Draw the menu of examples; of long ones that begin alike only the first is cut."""
    card, labels = checkpoint.card, dict[str, str]()
    for example in card.tried():
        short = drawing.plain(glossed(example, card.glosses.get(example, "")))
        labels[drawing.plain(example) if short in labels else short] = example
    named = {example: label for label, example in labels.items()}
    st.menu_button(say("Examples"), list(named), key=EXAMPLES, format_func=named.__getitem__, on_click=_take)


def _take() -> None:
    session.use_example(st.session_state[EXAMPLES])


def glossed(example: str, gloss: str) -> str:
    """An example on one short line, with what it means if it has a gloss."""
    short, meaning = (shortened(" ".join(text.split()), limit=EXAMPLE_CHARACTERS) for text in (example, gloss))
    return joined(" ", [short, f"({meaning})"]) if meaning else short
