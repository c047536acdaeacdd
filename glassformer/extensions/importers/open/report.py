"""Import report: verdict, config fields, and what became of each tensor."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from glassformer.charts.theme import capitalised
from glassformer.extensions.importers import third_party_models
from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.importers.library.report import ImportReport
from glassformer.extensions.importers.open.questions import forget, half_chosen
from glassformer.runs.open_run import attempt
from glassformer.shared import drawing
from glassformer.shared.i18n import frame, st
from glassformer.state import session
from glassformer.state.link import Answers, without_answer
from transformer.checkpoint.listing import Entry
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, joined, say, say_n

MOST_NAMES: Final = 12
FIELDS, TENSORS = "import_fields", "import_tensors"


def examined(entry: Entry) -> ImportReport | None:
    """The report, without the answers where they are impossible, which is said; None if the thing cannot be read."""
    given = session.answers_of(entry.name)
    with st.spinner(say("Inspecting “{name}”…", name=drawing.plain(entry.title))):
        if not given:
            found = attempt(lambda: third_party_models.preview(entry))
            return None if found is None else found.report
        try:
            return _with(entry, given)
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
        st.caption(drawing.plain(joined(" ", report.notes)))
    asked = {one.name for one in report.asked}
    _names(
        () if asked & set(PARTS) else report.missing,  # the questions are about them
        say_n(
            "{n} tensor is missing, so the model cannot be opened.",
            "{n} tensors are missing, so the model cannot be opened.",
            len(report.missing),
        ),
    )
    _names(
        report.left_over,
        say_n(
            "{n} tensor has no known meaning. The model might be misread, so it cannot be opened.",
            "{n} tensors have no known meaning. The model might be misread, so it cannot be opened.",
            len(report.left_over),
        ),
    )


def details(report: ImportReport) -> None:
    """Draw the fields and the tensors, folded."""
    with st.expander(_counted_fields(report)):
        _table(
            FIELDS,
            [say("Field"), say("Value"), say("How"), say("Evidence")],
            report.field_rows(),
            say("Every config field with its value and where the value comes from."),
        )
    with st.expander(_counted_tensors(report)):
        _table(
            TENSORS,
            [say("Tensor"), say("Type and shape"), say("What became of the tensor"), say("How, or why")],
            report.rows(),
            say("Every tensor in the file and what became of it. Tensors that occur in every layer share one row."),
        )
        filled = [say("“{name}”: {how}", name=name, how=how) for name, how in report.filled_rows()]
        if filled:
            said = say(
                "Stands in for what the file does not have, and is not counted: {names}.",
                names=joined("; ", filled[:MOST_NAMES]),
            )
            st.caption(drawing.plain(said))


def _table(key: str, columns: list[str], rows: Sequence[Sequence[str]], alt: str) -> None:
    table = frame([list(row) for row in rows], columns=columns)
    st.container(key=key).dataframe(table, hide_index=True, row_height=29, alt=alt)


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
               read=counts["read"], inferred=counts["inferred"], answered=counts["answered"],
               asked=counts["asked"])  # fmt: skip


def _counted_tensors(report: ImportReport) -> Sentence:
    fates = Counter(
        "reshaped" if one.fate == "renamed" and one.reshape else "kept" if one.fate == "renamed" else one.fate
        for one in report.file_tensors
    )
    return say("Tensors: {renamed} renamed ({reshaped} of them also reshaped), {ignored} ignored, {missing} "
               "missing, {left} not recognised", renamed=fates["kept"] + fates["reshaped"],
               reshaped=fates["reshaped"], ignored=fates["ignored"], missing=len(report.missing),
               left=len(report.left_over))  # fmt: skip
