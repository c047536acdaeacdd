"""Import report as widgets: steps, summary, questions with choices, tokenizer menus, tables of fields and tensors."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.charts.theme import capitalised
from glassformer.extensions.importers import imported_model, third_party_models
from glassformer.extensions.importers.library.answer_ranking import NOT_TRIED, best_answers
from glassformer.extensions.importers.library.import_inputs import MAY_BE_NONE
from glassformer.extensions.importers.library.kept_answers import YOU, as_said, as_told
from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.importers.library.report import NO_EMBEDDINGS, Choice, Field, ImportReport
from glassformer.extensions.importers.library.unknown_tensors import IGNORED
from glassformer.extensions.tokenizers.options import language_name
from glassformer.runs.error_boundary import attempt
from glassformer.runs.sources import QUESTIONS
from glassformer.shared import controls, drawing
from glassformer.shared.controls import ControlBinding
from glassformer.shared.i18n import frame, st
from glassformer.state import session
from glassformer.state.link import Answer, Answers, value_of, with_answer, without_answer
from transformer.checkpoint.listing import Entry
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, joined, say, say_n

MOST_OUTPUT: Final = 24  # characters of an output next to a choice
LANGUAGES: Final = ("source_language", "target_language")
FIELDS: Final[Mapping[str, str]] = {
    "n_heads": say("Heads in each attention sub-layer"),
    "norm": say("Placement of the norms"),
    "norm_kind": say("Kind of norm"),
    "norm_eps": say("Epsilon of the norms"),
    "scale_embedding": say("Embeddings times √d_model"),
    "activation": say("Activation function"),
    "positions": say("Positions"),
    "sinusoid_layout": say("Order of the sines and cosines"),
    "score_scale": say("Scale of the scores"),
    "max_len": say("Maximum tokens per side"),
    "src_table": say("Tensor of the source embeddings"),
    "tgt_table": say("Tensor of the target embeddings"),
    "output_table": say("Tensor of the output layer"),
    "output_bias": say("Bias of the output layer"),
    "prefix": say("Prefix of the model's tensors"),
    "encoder_layers": say("Where the encoder's layers are"),
    "decoder_layers": say("Where the decoder's layers are"),
    "encoder_norm": say("Norm after the encoder's last layer"),
    "decoder_norm": say("Norm after the decoder's last layer"),
    "self_attn": say("Module of self-attention"),
    "cross_attn": say("Module of cross-attention"),
    "q_proj": say("Matrix of the queries"),
    "k_proj": say("Matrix of the keys"),
    "v_proj": say("Matrix of the values"),
    "out_proj": say("Matrix that combines the heads"),
    "up_proj": say("First matrix of the feed-forward network"),
    "down_proj": say("Second matrix of the feed-forward network"),
    "norms": say("Norms of a layer, in the order of its sub-layers"),
    "ignored": say("Tensors that the model does not need"),
    "prepend_source_bos": say("Texts begin with the start mark"),
    "append_source_eos": say("Sources end with the end mark"),
    "tie_output": say("The output layer shares the embeddings"),
    "shared_vocab": say("One vocabulary for both sides"),
    "pad_id": say("Id of the padding token"),
    "unk_id": say("Id of the unknown token"),
    "bos_id": say("Id of the start mark"),
    "eos_id": say("Id of the end mark"),
    "decoder_start_id": say("Id that the decoder starts with"),
    "source_language": say("Language of the source"),
    "target_language": say("Language of the output"),
}
_VALUES: Final[Mapping[tuple[str, Any], str]] = {
    ("norm", "pre"): say("pre: before each sub-layer"),
    ("norm", "post"): say("post: after each sub-layer"),
    ("norm_kind", "layer"): say("layer: divides by √(variance + epsilon)"),
    ("norm_kind", "deviation"): say("deviation: divides by (standard deviation + epsilon)"),
}


def label(field: Field) -> str:
    """What a question is called."""
    return say("{title} ({name})", title=FIELDS[field.name], name=field.name) if field.name in FIELDS else field.name


def choice_of_field(field: Field, one: Choice) -> str:
    """What a possible answer is called, with its score if it has one, or that it is usual."""
    said = marked(field, one.value)
    if one.score is None:
        return said
    if one.output is None:
        return say("{answer} · loss {score:.3f}", answer=said, score=one.score)
    output = one.output if len(one.output) <= MOST_OUTPUT else f"{one.output[:MOST_OUTPUT]}…"
    return say("{answer} · loss {score:.3f} · output “{output}”", answer=said, score=one.score, output=output)


def marked(field: Field, found: Any) -> str:
    """What a value of a field is called, and whether it is the usual one."""
    said = value(field.name, found)
    return say("{answer} (usual)", answer=said) if field.usual and field.usual[0] == found else said


def value(name: str, found: Any) -> str:
    """What a value of a field is called."""
    if name in LANGUAGES and isinstance(found, str):
        return say("{title} ({name})", title=language_name(found), name=found)
    if (name, found) in _VALUES:
        return _VALUES[name, found]
    if name == "score_scale":
        return say("none: q·k is not scaled (factor 1)") if found == 1 else as_told(name, found)
    if isinstance(found, bool):
        return say("yes") if found else say("no")
    return say("none") if found is None else as_said(found)


NOT_YET: Final = say("choose …")
NO_FILE: Final = say("none: the model reads and writes ids")
FIRST_OF_EACH, FORGET, SAME, USUAL = "first_of_each", "forget_answers", "same_pieces", "usual_answers"
MOST_IDS: Final = 4  # of special tokens that are offered; others are typed
SIDES: Final = ("source_pieces", "target_pieces")
_TOKENIZERS: Final = {
    "pieces": say("Tokenizer"),
    "source_pieces": say("Tokenizer of the source"),
    "target_pieces": say("Tokenizer of the output"),
}


def questions(entry: Entry, report: ImportReport) -> None:
    """Draw the questions, those that are answered included, and the choice of tokenizers."""
    if not third_party_models.has_own_tokenizer(entry):
        _tokenizers(entry, report)
    if not any(map(_is_question, report.fields)):
        return
    st.subheader(say("Questions that the files leave open"), anchor=QUESTIONS)
    said = say_n("{n} question still needs an answer.", "{n} questions still need an answer.", len(report.asked))
    st.caption(said if report.asked else say("Every question is answered."))
    _usual(entry, report)
    if any(one.name not in NOT_TRIED for one in report.tried):
        imported_model.scoring(entry, report)
    with st.container(horizontal=True):
        best = tuple(best_answers(report).items())
        if best:
            asked = (one for one in report.asked if one.name == IGNORED)  # of the tensors that it may do without, all
            best += tuple((one.name, ",".join(choice.value for choice in one.choices)) for one in asked)
        said = say(
            "Compare the choices first. This button then selects the combination of answers with the lowest loss."
        )
        st.button(
            say("Use the best-ranked answers"),
            key=FIRST_OF_EACH,
            disabled=not best,
            on_click=_answer_all,
            args=(entry.name, best),
            help=said,
        )
        forget(entry)
    found = [one for one in report.fields if _is_question(one)]
    for left, right in zip(found[::2], [*found[1::2], None], strict=False):
        columns = st.columns(2, gap="medium")
        for column, one in zip(columns, (left, right), strict=True):
            if one is not None:
                with column:
                    _question(entry, one)


def _usual(entry: Entry, report: ImportReport) -> None:
    """Draw the button that gives the usual answers, and which these are."""
    if not report.usual:
        return
    taken = [
        say("{title}: {text}", title=label(one), text=value(one.name, one.usual[0]))
        for one in report.asked
        if one.usual
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        answers = tuple(report.usual.items())
        st.button(
            say("Take what is usual"), key=USUAL, type="primary", on_click=_answer_all, args=(entry.name, answers)
        )
        st.caption(drawing.plain(say("Unless your code says otherwise: {answers}.", answers=joined("; ", taken))))


def forget(entry: Entry, *, key: str = FORGET) -> None:
    """Draw the button that takes all answers back."""
    st.button(
        say("Delete the answers"),
        key=key,
        disabled=not session.answers_of(entry.name),
        on_click=_keep,
        args=(entry.name, ()),
    )


def _is_question(field: Field) -> bool:
    """Whether it is asked, answered or decided, or was assumed though it has other choices."""
    return field.how in ("asked", "answered", "decided") or (field.how == "inferred" and bool(field.choices))


def _question(entry: Entry, field: Field) -> None:
    if field.name == IGNORED and field.how == "asked":
        _several(entry, field)
    elif field.choices:
        if field.name in LANGUAGES:
            field = replace(field, choices=tuple(sorted(field.choices, key=lambda one: language_name(one.value))))
        values, answered = [one.value for one in field.choices], field.how in ("answered", "decided")
        if answered and field.value not in values:  # an address may say any value of what is assumed
            field, values = replace(field, choices=(*field.choices, Choice(field.value))), [*values, field.value]
        given = values.index(field.value) if answered else None
        assumed = field.is_assumed
        unsaid = say("{answer} (assumed)", answer=value(field.name, field.value)) if assumed else NOT_YET
        options: dict[int | None, str] = {None: unsaid}
        options |= {place: choice_of_field(field, one) for place, one in enumerate(field.choices)}
        kept = ControlBinding(f"answer_{field.name}", given, partial(_choose, entry.name, field.name, values))
        controls.menu(kept, label(field), options)
    else:
        _typed(entry, field)
    if field.evidence != YOU:
        st.caption(drawing.with_code(capitalised(field.evidence)))


def _several(entry: Entry, field: Field) -> None:
    """Draw the choice of tensors that the model does without."""
    key = f"answer_{field.name}"
    names = [one.value for one in field.choices]
    known = str(dict(session.answers_of(entry.name)).get(field.name, ""))
    st.session_state[key] = known.split(",") if known else []
    st.multiselect(
        label(field),
        names,
        key=key,
        placeholder=say("None; choose the tensors that the model does not need"),
        accept_new_options=True,
        on_change=_take,
        args=(entry.name, field.name, key),
    )


def _typed(entry: Entry, field: Field) -> None:
    """Draw the choice of an id: none, where that is possible, the first ones, or one that is typed."""
    key = f"answer_{field.name}"
    none, typed = json.dumps(None), say("Type a number, then press Enter")
    options = [*([none] if field.name in MAY_BE_NONE else ()), *map(str, range(MOST_IDS))]
    if field.how == "answered":
        options = list(dict.fromkeys((*options, json.dumps(field.value))))
    st.session_state[key] = json.dumps(field.value) if field.how == "answered" else None
    st.selectbox(
        label(field),
        options,
        index=None,
        key=key,
        format_func=lambda said: marked(field, value_of(said)),
        placeholder=say("Choose none, or type a number and press Enter") if field.name in MAY_BE_NONE else typed,
        accept_new_options=True,
        on_change=_take,
        args=(entry.name, field.name, key, value_of),
    )


def _tokenizers(entry: Entry, report: ImportReport) -> None:
    """Draw the choice of files that split texts into pieces."""
    known = dict(session.answers_of(entry.name))
    shared = next((one.value for one in report.fields if one.name == "shared_vocab"), True)
    names = ("pieces",) if shared else SIDES
    st.subheader(say("How texts are split into tokens"))
    said = say(
        "The tokenizer is usually next to the weights. You can also type the path of a different tokenizer, starting "
        "from the folder of checkpoints."
    )
    st.caption(said)
    beside = NO_FILE
    if report.pieces:
        beside = say("{files} (next to the weights)", files=", ".join(report.pieces))
    for column, name in zip(st.columns(2, gap="medium"), names, strict=False):
        options = list(dict.fromkeys(filter(None, (*third_party_models.beside(entry), known.get(name)))))
        key = f"answer_{name}"
        st.session_state[key] = known.get(name)
        column.selectbox(
            _TOKENIZERS[name],
            options,
            index=None,
            key=key,
            placeholder=beside,
            accept_new_options=True,
            on_change=_take,
            args=(entry.name, name, key),
        )
    half = half_chosen(entry.name)
    if half is not None and not shared:
        name, path = half
        other = SIDES[1 - SIDES.index(name)]
        said = say("The source has no tokenizer yet: choose one above, or use the output's tokenizer for both.")
        if other == "target_pieces":
            said = say("The output has no tokenizer yet: choose one above, or use the source's tokenizer for both.")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(said)
            args = entry.name, ((other, path),)
            st.button(say("Use one tokenizer for both sides"), key=SAME, on_click=_answer_all, args=args)


def half_chosen(model: str) -> tuple[str, str] | None:
    """The tokenizer of one side, by its question, where the other side has none yet."""
    known = dict(session.answers_of(model))
    given = [(name, str(known[name])) for name in SIDES if known.get(name)]
    return given[0] if len(given) == 1 and not known.get("pieces") else None


def has_pieces(entry: Entry, report: ImportReport) -> bool:
    """Whether texts are split by a tokenizer that was found or chosen."""
    return third_party_models.has_own_tokenizer(entry) or bool(report.pieces)


# Callbacks; a session keeps them, so they hold names and values alone.


def _choose(model: str, name: str, values: Sequence[Any], place: int | None) -> None:
    known = session.answers_of(model)
    _keep(model, without_answer(known, name) if place is None else with_answer(known, name, values[place]))


def _take(model: str, name: str, key: str, read: Callable[[str], Answer] = str) -> None:
    """Answer with what was typed or chosen; nothing takes the answer back."""
    found = st.session_state[key]
    text = ",".join(found) if isinstance(found, list) else str(found or "").strip()
    known = session.answers_of(model)
    _keep(model, with_answer(known, name, read(text)) if text else without_answer(known, name))


def _answer_all(model: str, found: Sequence[tuple[str, Answer]]) -> None:
    _keep(model, tuple({**dict(session.answers_of(model)), **dict(found)}.items()))


def _keep(model: str, found: tuple[tuple[str, Answer], ...]) -> None:
    session.keep_answers(model, found)
    session.new_run()


MOST_NAMES: Final = 12
FIELD_ROWS, TENSOR_ROWS = "import_fields", "import_tensors"


def examined(entry: Entry) -> ImportReport | None:
    """The report, without the answers where they are impossible, which is said; None if the thing cannot be read."""
    given = session.answers_of(entry.name)
    with st.spinner(say("Inspecting “{name}”…", name=drawing.plain(entry.title))):
        if not given:
            found = attempt(lambda: third_party_models.preview(entry))
            return None if found is None else imported_model.ranked(entry, found.report)
        try:
            return imported_model.ranked(entry, _with(entry, given))
        except CheckpointError as error:
            st.error(drawing.with_code(capitalised(error.sentence)))
            bare = attempt(lambda: third_party_models.preview(entry))
    if bare is None:
        return None
    st.caption(say("The report below uses only the files, not your answers."))
    forget(entry, key="forget_impossible")
    return bare.report


def _with(entry: Entry, given: Answers) -> ImportReport:
    """The report with the answers; a tokenizer of one side waits for the other, and nothing is wrong yet."""
    half = half_chosen(entry.name)
    try:
        return third_party_models.preview(entry, given).report
    except CheckpointError:
        if half is None:
            raise
        return third_party_models.preview(entry, without_answer(given, half[0])).report


def steps(report: ImportReport, *, has_pieces: bool) -> None:
    """Draw how far the opening is: the files are read, pieces are known or left as ids, questions are answered."""
    done, open_ = "✓", "○"
    marks = [
        say("{mark} 1 Files", mark=done if not (report.missing or report.left_over) else open_),
        say("{mark} 2 Tokens", mark=done) if has_pieces else say("{mark} 2 Tokens: only ids so far", mark=open_),
        say("{mark} 3 Questions", mark=open_ if report.asked else done),
    ]
    st.markdown(joined(" → ", marks))


def summary(report: ImportReport) -> None:
    """Draw what was recognised, what was odd, and what is in the way."""
    st.markdown(drawing.plain(report.recognised))
    if report.notes:
        st.caption(drawing.with_code(joined(" ", report.notes)))
    if report.lacks_embeddings:
        st.error(NO_EMBEDDINGS)
        return
    asked = {one.name for one in report.asked}
    missing = say_n(
        "{n} tensor is missing, so the model cannot be opened.",
        "{n} tensors are missing, so the model cannot be opened.",
        len(report.missing),
    )
    unknown = say_n(
        "{n} tensor has no known meaning. The model might be misread, so it cannot be opened.",
        "{n} tensors have no known meaning. The model might be misread, so it cannot be opened.",
        len(report.left_over),
    )
    _names(() if asked & set(PARTS) else report.missing, missing)  # the questions are about them
    _names(report.left_over, unknown)


def details(report: ImportReport) -> None:
    """Draw the fields and the tensors, folded."""
    with st.expander(_counted_fields(report)):
        table = frame(report.field_rows(), columns=[say("Field"), say("Value"), say("How"), say("Evidence")])
        alt: str = _counted_fields(report)
        st.container(key=FIELD_ROWS).dataframe(table, hide_index=True, row_height=29, alt=alt)
    with st.expander(_counted_tensors(report)):
        columns = [say("Tensor"), say("Type and shape"), say("What became of the tensor"), say("How, or why")]
        alt = say("Every tensor in the file and what became of it. Tensors that occur in every layer share one row.")
        table = frame(report.rows(), columns=columns)
        st.container(key=TENSOR_ROWS).dataframe(table, hide_index=True, row_height=29, alt=alt)
        filled = [say("“{name}”: {how}", name=name, how=how) for name, how in report.filled_rows()]
        if filled:
            said = say(
                "Stands in for what the file does not have, and is not counted: {names}.",
                names=joined("; ", filled[:MOST_NAMES]),
            )
            st.caption(drawing.plain(said))


def _names(names: Sequence[str], said: Sentence) -> None:
    if not names:
        return
    shown = [say("“{name}”", name=drawing.plain(name)) for name in names[:MOST_NAMES]]  # names are data
    if len(names) > MOST_NAMES:
        shown.append(say("and {n} more", n=len(names) - MOST_NAMES))
    st.error(joined("  \n", [said, joined(", ", shown)]))


def _counted_fields(report: ImportReport) -> Sentence:
    counts = Counter(one.how for one in report.fields)
    return say("Config fields: {read} read, {inferred} inferred, {answered} answered, {asked} still to be answered",
               read=counts["read"], inferred=counts["inferred"], answered=counts["answered"] + counts["decided"],
               asked=counts["asked"])  # fmt: skip


def _counted_tensors(report: ImportReport) -> Sentence:
    fates = Counter(
        "reshaped" if one.fate == "renamed" and one.how else "kept" if one.fate == "renamed" else one.fate
        for one in report.file_tensors
    )
    return say("Tensors: {renamed} renamed ({reshaped} of them also reshaped), {ignored} ignored, {missing} "
               "missing, {left} not recognised", renamed=fates["kept"] + fates["reshaped"],
               reshaped=fates["reshaped"], ignored=fates["ignored"], missing=len(report.missing),
               left=len(report.left_over))  # fmt: skip
