"""The first row of a page: its title, the source box and the examples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from html import escape
from typing import TYPE_CHECKING, Final

from glassformer.charts.theme import shortened
from glassformer.frame.offer import follow_switch, offer, typed
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import publish
from glassformer.shared import cover, drawing, page_style
from glassformer.shared.choices import KEEP
from glassformer.shared.door import here, st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import apart, session
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.labelled_maps import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

EXAMPLE_CHARACTERS: Final = 60
EXAMPLES: Final = "example_menu"
LONGEST: Final = 160  # characters of what maps are of; the Checkpoints page has the whole text


def of_a_sentence(title: str, checkpoint: Checkpoint, draw: Callable[[Checkpoint], None]) -> None:
    """Draw a page about a sentence; another sentence draws it again, but not the sidebar and the menu beside it.

    `draw` draws what is below the source box; best a fragment itself, as a step need not draw the box again.
    """
    st.html(page_style.TO_SENTENCE)
    _of_a_sentence(title, checkpoint, draw)


@st.fragment
def _of_a_sentence(title: str, checkpoint: Checkpoint, draw: Callable[[Checkpoint], None]) -> None:
    with st.container():  # an offer comes and goes: outside, it would move what is below, and a fragment is its place
        source_box(checkpoint, head(title))
    if cover.covered(cover.ALL):
        _pieces(checkpoint)
        cover.stands_for(cover.ALL)
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
        cover.pieces({say("The sentence in pieces:"): pieces})


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
    if apart.guidance().types:
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
    """Callback: take the example that was chosen."""
    session.use_example(st.session_state[EXAMPLES])


def glossed(example: str, gloss: str) -> str:
    """An example on one short line, with what it means if it has a gloss."""
    short, meaning = (shortened(" ".join(text.split()), limit=EXAMPLE_CHARACTERS) for text in (example, gloss))
    return joined(" ", [short, f"({meaning})"]) if meaning else short
