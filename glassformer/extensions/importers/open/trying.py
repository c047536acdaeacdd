"""A sentence through the model with the answers so far: nonsense shows that one of them is wrong."""

from typing import Final

import numpy as np

from glassformer.extensions.importers import foreign_models
from glassformer.runs import loading
from glassformer.runs.attempt import attempt
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.trace import Trace
from transformer.text.raw import RawIds

TEXT: Final = "try_sentence"
MOST_NEW: Final = 48


def trying(entry: Entry) -> Checkpoint | None:
    """Draw the box for a sentence, and what the model makes of it; returns that, or None where it does not open."""
    st.subheader(say("Try a sentence"))
    checkpoint = attempt(lambda: foreign_models.open_foreign(entry, session.answers_of(entry.name)))
    if checkpoint is None:
        return None
    for warning in checkpoint.warnings:
        st.warning(drawing.plain(warning), icon=":material/warning:")
    text = st.text_input(
        say("Sentence"),
        key=TEXT,
        label_visibility="collapsed",
        placeholder=say("Type ids, such as 5 17 3, then press Enter")
        if isinstance(checkpoint.src_tokenizer, RawIds)
        else say("Type a text, then press Enter"),
    )
    if text.strip():
        trace = attempt(
            lambda: loading.runner().trace(
                checkpoint, checkpoint.query(text, max_new=min(MOST_NEW, checkpoint.config.max_len))
            )
        )
        if trace is not None:
            _result(checkpoint, trace)
    return checkpoint


def _result(checkpoint: Checkpoint, trace: Trace) -> None:
    drawing.notes(trace.notes)
    st.caption(drawing.plain(say("Read as: {pieces}", pieces=" ".join(trace.src_pieces))))
    parts = anatomy(checkpoint.config)
    if parts.fills:
        st.info(say("This model fills in hidden pieces. Hide a piece on the Step page."))
    elif not parts.writes:
        st.info(
            say(
                "This encoder-only model generates no output. The other pages show how the model processes the "
                "sentence."
            )
        )
    if not parts.writes:
        return
    with st.container(border=True):
        st.markdown(drawing.plain(trace.output_text) or say("The output is empty."))
    if trace.n_steps:
        said = [
            say(
                "The model gave the pieces of its output a mean probability of {probability:.3f} (geometric mean).",
                probability=float(np.exp(trace.log_prob / trace.n_steps)),
            ),
            say("If the output makes no sense or repeats one piece again and again, one of the answers is wrong."),
        ]
        st.caption(drawing.plain(joined(" ", said)))
