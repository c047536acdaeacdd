"""An imported model on its page: choice of a file, trial sentence, ranking of answers, links, form that saves it.

A folder is written only inside a folder of checkpoints, under a new name, for any user.
"""

import os
import re
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from glassformer import SHIPPED
from glassformer.extensions.importers import third_party_models
from glassformer.extensions.importers.library.answer_ranking import POINTS_TO_THE_DOCTOR
from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.importers.library.report import ImportReport
from glassformer.extensions.importers.third_party_models import brought, ways
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt, to_the_doctor
from glassformer.server import server_options
from glassformer.shared import drawing, menu, pairs
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import MAX_NAME, Answers
from transformer.checkpoint.free_memory import check_disk
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.save import n_bytes, save
from transformer.errors import CheckpointError, shown
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.trace import Trace
from transformer.text.tokenizer import RawIds

TEXT: Final = "try_sentence"
MOST_NEW: Final = 48


def trying(entry: Entry) -> Checkpoint | None:
    """Draw the box for a sentence, and what the model makes of it; returns that, or None where it does not open."""
    st.subheader(say("Try a sentence"))
    checkpoint = attempt(lambda: third_party_models.open_foreign(entry, session.answers_of(entry.name)))
    if checkpoint is None:
        return None
    for warning in checkpoint.warnings:
        st.warning(drawing.with_code(warning), icon=":material/warning:")
    says, most = say("Type a text, then press Enter"), min(MOST_NEW, checkpoint.config.max_len)
    if isinstance(checkpoint.src_tokenizer, RawIds):
        says = say("Type ids, such as 5 17 3, then press Enter")
    text = st.text_input(say("Sentence"), key=TEXT, label_visibility="collapsed", placeholder=says)
    if text.strip():
        trace = attempt(lambda: loading.runner().trace(checkpoint, checkpoint.query(text, max_new=most)))
        if trace is not None:
            _result(checkpoint, trace)
    return checkpoint


def _result(checkpoint: Checkpoint, trace: Trace) -> None:
    drawing.notes(trace.notes)
    st.caption(drawing.plain(say("Read as: {pieces}", pieces=" ".join(trace.src_tokens))))
    parts = anatomy(checkpoint.config)
    if parts.fills:
        st.info(say("This model fills in hidden tokens. Hide a token on the page Translate."))
    elif not parts.writes:
        said = say(
            "This encoder-only model generates no output. The other pages show how the model processes the sentence."
        )
        st.info(said)
    if not parts.writes:
        return
    with st.container(border=True):
        st.markdown(drawing.plain(trace.output_text) or say("The output is empty."))
    if trace.n_steps:
        mean = say(
            "The model gave the tokens of its output a mean probability of {probability:.3f} (geometric mean).",
            probability=float(np.exp(trace.log_prob / trace.n_steps)),
        )
        hint = say("If the output makes no sense or repeats one token again and again, one of the answers is wrong.")
        st.caption(drawing.plain(joined(" ", [mean, hint])))


TEXTS, SCORED, SCORE = "score_texts", "scored_choices", "score_choices"


def scoring(entry: Entry, report: ImportReport) -> None:
    """Draw the box for texts, and try the choices on them when asked to."""
    with st.expander(say("Compare the choices with a few sentences"), expanded=bool(report.asked)):
        texts = pairs.box(key=TEXTS)
        said, is_empty = say("Compare the choices"), not texts.strip()
        with pressed(st.button, said, key=SCORE, about=entry.name, disabled=is_empty) as asked:
            is_scored = asked and _score(entry, report, texts)
        if is_scored:
            st.rerun()  # what is above shows the answers
        name, _, notes = st.session_state.get(SCORED) or ("", None, ())
        if name == entry.name:
            place = notes.index(POINTS_TO_THE_DOCTOR) if POINTS_TO_THE_DOCTOR in notes else len(notes)
            st.caption(drawing.with_code(joined(" ", notes[:place])))
            if notes[place:]:
                st.warning(drawing.with_code(joined(" ", notes[place:])), icon=":material/stethoscope:")


def _score(entry: Entry, report: ImportReport, texts: str) -> bool:
    """Rank the answers, and take those that pairs decide, anew where they did before; whether that could be done."""
    bar = st.progress(0.0)

    def show(done: int, most: int) -> None:
        bar.progress(
            min(done / max(most, 1), 1.0), text=say("Tried {n} of at most {most} combinations", n=done, most=most)
        )

    def score() -> ImportReport:
        given = tuple(one for one in session.answers_of(entry.name) if one[0] not in report.decided)
        bare = third_party_models.preview(entry, given).report if report.decided else report
        found = third_party_models.scored(entry, given, bare, pairs.with_tabs(texts), show)
        st.session_state[SCORED] = entry.name, replace(found, notes=()), found.notes[len(bare.notes) :]
        st.session_state[pairs.CARRIED] = entry.name, texts
        session.keep_answers(entry.name, (*given, *found.decided.items()))
        session.new_run()
        return found

    found = attempt(score)
    bar.empty()
    return found is not None


def ranked(entry: Entry, report: ImportReport) -> ImportReport:
    """The report with its choices as they were ranked last, if they were, and what pairs decided."""
    kept: tuple[str, ImportReport, object] | None = st.session_state.get(SCORED)
    return report.ranked(kept[1]) if kept is not None and kept[0] == entry.name else report


NAME, WHERE, KEEP, WRITE, KEPT = "keep_name", "keep_where", "keep_answers", "keep_write", "kept_as"
_NAME: Final = re.compile(r"[^\W_][\w .()-]{0,79}")
_ENDINGS: Final = (".training", ".npz")  # mean something else in a folder of checkpoints

_ONE_AT_A_TIME = threading.Lock()


def going_on(entry: Entry) -> None:
    """Draw the links to the pages, and the form that writes a folder."""
    links(entry)
    st.caption(say("The address of every page contains your answers, so a link to any page opens the same model."))
    if server_options.is_local() or not brought(entry.name):  # a server's disk is not every visitor's
        _form(entry)


def links(entry: Entry) -> None:
    """Draw the links to the pages that show the model."""
    st.subheader(say("Open it"))
    link = replace(session.asked(), revision="", model=entry.name, source=_tried())
    with st.container(horizontal=True):
        menu.link("step", say("Translate"), link, icon=":material/play_arrow:")
        menu.link("attention", say("Look at the model's attention"), link, icon=":material/grid_on:")
        menu.link("checkpoints", say("The model's features and tensors"), link, icon=":material/list:")
        to_the_doctor(link)


def _form(entry: Entry) -> None:
    folders = dict(enumerate(_writable()))
    if not folders:
        said = say(
            "This server cannot write to any folder of checkpoints. To keep the answers, copy the address of "
            "this page, or run `python -m transformer import` on your own machine."
        )
        st.caption(said)
        return
    with st.expander(say("Keep the answers: save a checkpoint folder")), st.form(KEEP, border=False):
        st.session_state.setdefault(NAME, entry.folder.stem)
        name = st.text_input(say("Name of the new folder"), key=NAME, max_chars=80)
        where = st.selectbox(say("In"), list(folders), key=WHERE, format_func=lambda place: folders[place].name)
        with pressed(st.form_submit_button, say("Write it"), key=WRITE, about=entry.name) as asked:
            if asked:
                with st.spinner(say("Writing…")):
                    written = attempt(lambda: keep(entry, session.answers_of(entry.name), name, folders[where]))
                st.session_state[KEPT] = None if written is None else (entry.name, written.name)
    of, kept = st.session_state.get(KEPT) or ("", "")
    if of == entry.name:
        st.success(
            drawing.plain(say("Saved as “{name}”. From now on, this model opens without any questions.", name=kept))
        )
        there = replace(session.asked(), revision="", model=kept, answers=(), source=_tried())
        menu.link("step", say("Open it"), there, icon=":material/play_arrow:")


def _tried() -> str | None:
    """The sentence that was tried, which the other pages go on with."""
    return str(st.session_state.get(TEXT) or "").strip() or None


def keep(entry: Entry, given: Answers, name: str, parent: Path) -> Path:
    """Write a model of another program as a checkpoint folder; a CheckpointError if name or disk do not allow it."""
    name = checked(name)
    folder = parent / name
    content = third_party_models.preview(entry, given).content
    if content is None:
        raise CheckpointError("“{name}”: some questions are not answered yet.", name=entry.name)
    with content.values() as values:
        needed = n_bytes(values)
    with _ONE_AT_A_TIME:
        try:
            remedy = say("That is twice the size of the model. Make room, or choose another folder.")
            check_disk(parent, 2 * needed, remedy, label=name)  # a full disk would hurt others
            folder.mkdir()  # takes the name, or says that somebody has it
            try:
                save(content.parts(), folder)
            except BaseException:
                with suppress(OSError):
                    folder.rmdir()
                raise
        except FileExistsError:
            raise CheckpointError("“{name}”: already exists; choose another name.", name=name) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise CheckpointError("“{folder}”: cannot be written ({reason}).", folder=name, reason=reason) from None
    loading.look_again()
    return folder


def checked(name: str) -> str:
    """The valid name of a new folder (letters, numbers, a few marks), or a `CheckpointError`, as for a path."""
    name = name.strip()
    if not _NAME.fullmatch(name) or name.endswith(_ENDINGS):
        raise CheckpointError(
            "The name {found} cannot be used. Use 1 to 80 letters and numbers, with . _ - ( ) or spaces between "
            "them. A name must not end in {endings}.",
            found=shown(name),
            endings=", ".join(_ENDINGS),
        )
    return name


def _writable() -> list[Path]:
    """The folders of checkpoints that this process may write to; the project's own is not one of them."""
    own = [folder for folder in loading.folders() if folder != SHIPPED]
    return [folder for folder in own if folder.is_dir() and os.access(folder, os.W_OK)]


SOURCE: Final = "open_source"
REFUSED: Final = "open_refused"


def source(chosen: Entry) -> Entry | None:
    """Draw the choice of a third-party or uploaded model to open; None if none is selected."""
    found = third_party_models.listed()
    for one in ways():
        found |= one.own()
    ours = chosen.holds == "foreign" or brought(chosen.name)
    if ours:
        found[chosen.name] = chosen
        st.session_state[SOURCE] = chosen.name
    else:
        st.session_state[SOURCE] = None
    st.selectbox(
        say("File or folder"),
        list(found),
        index=None,
        key=SOURCE,
        on_change=_take,
        accept_new_options=True,
        format_func=lambda name: found[name].title if brought(name) and name in found else name,
        placeholder=say("Choose a file or folder on this server, or type its path"),
        width=620,
    )
    refused = st.session_state.pop(REFUSED, None)
    if refused is not None:
        st.error(drawing.with_code(_nowhere(refused)))
    return chosen if ours else None


def how_to_bring_one() -> None:
    """Say where files and folders have to lie, and which can be opened."""
    said = say(
        "Put the file or folder into one of the folders of checkpoints below, or start the app with `glassformer "
        "{option} DIR`. Only what is in these folders can be opened:",
        option=loading.OPTION,
    )
    st.markdown(said)
    st.markdown("\n".join(f"- **{drawing.plain(folder.name)}**" for folder in loading.folders()))
    said = say(
        "You can open Hugging Face `transformers` folders and models saved by fairseq, OpenNMT-py, Joey NMT or "
        "Marian. You can also open files written by `torch.save` or safetensors ({suffixes}, or any other name) "
        "that contain PyTorch's own Transformer with its embeddings and output layer, or a model from a tutorial. The "
        "Checkpoints page lists the model families.",
        suffixes=", ".join(SUFFIXES),
    )
    st.markdown(said)


def _take() -> None:
    path = st.session_state.get(SOURCE)
    if not path:
        return
    entry = next((found for one in ways() if (found := one.at(str(path).strip())) is not None), None)
    if entry is None:
        st.session_state[REFUSED] = str(path)
        return
    st.session_state[session.MODEL] = entry.name
    session.change_model()


def _nowhere(path: str) -> str:
    found = third_party_models.find(path.strip())
    return (found and found.error) or say(
        "There is no model from another program at “{path}” in the folders of checkpoints. Choose a folder with a "
        "config.json, or a file of weights. A path can have at most {most} characters.",
        most=MAX_NAME,
        path=path[:MAX_NAME],
    )
