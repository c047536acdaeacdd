"""Preview and loading of another program's model, from a folder that a reader knows or a file of weights.

transformer.load("runs/model.pt")                               opens it, or raises its open questions
transformer.load("runs/model.pt", answers={"n_heads": 4, ...})  answers them
preview(Path("runs/model.pt")).report                           what was understood, before anything is loaded
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from glassformer.extensions.importers.library import kept_answers
from glassformer.extensions.importers.library.answer_ranking import scored
from glassformer.extensions.importers.library.import_inputs import NOTHING, ImportInputs
from glassformer.extensions.importers.library.kept_answers import NO_ANSWERS, as_said
from glassformer.extensions.importers.library.readers import MOST_CONFIG, OURS, Reader, by_file, by_keys, readers
from glassformer.extensions.importers.library.report import Content, Field, Imported, ImportReport
from glassformer.extensions.importers.library.tutorial_import import import_weights
from glassformer.extensions.weight_files.library.weights import INDEX, PICKLED, WHOLE
from transformer.analysis.losses import Samples, read_samples
from transformer.checkpoint.consistency import first
from transformer.checkpoint.free_memory import CPU, Device, Progress, device_of, silent
from transformer.checkpoint.load import CONFIG, Checkpoint, assembled
from transformer.checkpoint.snapshots import meant
from transformer.errors import CheckpointError, UnansweredError
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence, joined, say

Kind = Literal["native", "weights"] | Reader
OF_A_FOLDER = (CONFIG, WHOLE, INDEX, PICKLED)  # files that mean the folder around them; a reader's own do, too
_MOST = 8  # choices that a message lists


def kind_of(source: Path, *, inside: Path | None = None) -> tuple[Kind, Path]:
    """The kind of a source: a checkpoint folder of this program, a folder that a reader reads, or weights.

    Also returns what to open: the folder, if the file needs the others. Refuses a missing source and a damaged
    config.json. `inside` is the real path of a folder that links may not leave.
    """
    if meant(source)[1] is not None:
        return "native", source
    if not source.is_file():
        return _of_folder(source, inside), source
    if source.name in OF_A_FOLDER or any(source.name in one.files for one in readers()):
        kind = _of_folder(source.parent, inside)
        if kind != "weights":
            return kind, source.parent
    return "weights", source


def _of_folder(folder: Path, inside: Path | None) -> Kind:
    files = FolderFiles(folder, inside=inside)
    if not files.has(CONFIG):
        return by_file(files) or "weights"
    record = files.json(CONFIG, limit=MOST_CONFIG)
    if not isinstance(record, Mapping):
        return "native"  # what it is, loading it says
    if any(key in record for key in OURS):
        return "native"
    return by_keys(record) or "weights"


class QuestionsError(UnansweredError):
    """A model cannot be loaded before some questions are answered.

    Args:
        report: Everything known about it, with the questions.
    """

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        field = report.asked[0]
        example = {field.name: field.choices[0].value if field.choices else 0}
        said = say(
            "{source}: some fields need an answer: {questions}. Give each answer under the name of its field, "
            "for example answers={example}.",
            source=report.source,
            questions=joined("; ", [question(one) for one in report.asked]),
            example=repr(example),
        )
        super().__init__(joined(" ", [said, *report.unused_answers]))

    def __reduce__(self) -> tuple[object, ...]:
        return QuestionsError, (self.report,)


def question(field: Field) -> Sentence:
    """A field with an open question, with its choices, as a clause."""
    if not field.choices:
        return say("{field} (any value that config.json allows)", field=field.name)
    choices = [as_said(choice.value) for choice in field.choices]
    shown = ", ".join([*choices[:_MOST], *["..."] * (len(choices) > _MOST)])
    return say("{field} (one of {choices})", field=field.name, choices=shown)


def preview(
    source: Path | str,
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    given: ImportInputs = NOTHING,
    inside: Path | None = None,
) -> Imported:
    """Find out what a model of another program is; its values stay in their file.

    Args:
        source: A folder of transformers, a file of weights, or a folder with one.
        answers: Answers to the questions of an earlier report, by field name.
        given: Tokenizers, for weights without them; pairs of sentences, on which the choices of open questions are
            tried.
        inside: The real path of a folder that it may not leave by a link; None if any will do.

    Raises:
        CheckpointError: It is damaged, unknown or a checkpoint of this program, or an answer is refused.
        DataError: The pairs cannot be read.
    """
    imported = _with_kept(source, answers, given, inside)
    if given.pairs is None or not imported.report.asked:
        return imported
    without_pairs = replace(given, pairs=None)
    report = ranked(
        source, imported.report, read_samples(given.pairs), answers=answers, given=without_pairs, inside=inside
    )
    return replace(imported, report=report)


def ranked(
    source: Path | str,
    report: ImportReport,
    samples: Samples,
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    given: ImportInputs = NOTHING,
    inside: Path | None = None,
    progress: Progress = silent,
) -> ImportReport:
    """The report with the choices of open questions ranked by the model's loss on texts of its task.

    `answers`, `given` and `inside` are those of the report; `progress` is called with the combinations tried and
    their number. Errors are those of `preview`; a DataError also says that a text has something that is not an id,
    for a model without a tokenizer.
    """

    def build(more: Mapping[str, Any]) -> Checkpoint | None:
        content = _with_kept(source, {**answers, **more}, given, inside).content
        return None if content is None else made(content, Path(source), inside, silent)

    return scored(report, build, samples, progress=progress)


def _with_kept(source: Path | str, answers: Mapping[str, Any], given: ImportInputs, inside: Path | None) -> Imported:
    """What is understood with the answers that are kept beside the model, too."""
    kept = kept_answers.read(kind_of(Path(source), inside=inside)[1], inside=inside)
    try:
        found = _understood(source, {**kept.answers, **answers}, given, inside)
    except CheckpointError as error:
        _understood(source, answers, given, inside)  # raises, too, where what is kept is not at fault
        hint = say("That answer was read from {file}; change it there, or delete the file.", file=kept.file)
        raise CheckpointError(joined(" ", [error.sentence, hint])) from error
    return replace(found, report=kept.told(found.report, answers))


def _understood(source: Path | str, answers: Mapping[str, Any], given: ImportInputs, inside: Path | None) -> Imported:
    kind, place = kind_of(Path(source), inside=inside)
    if kind == "native":
        raise CheckpointError(
            "{folder}: is already a checkpoint of this program; load it directly.", folder=as_typed(place, inside)
        )
    if kind == "weights":
        return import_weights(place, answers=answers, also=given, inside=inside)
    return kind.import_folder(place, answers=answers, also=given, inside=inside)


def load(
    source: Path | str,
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    given: ImportInputs = NOTHING,
    inside: Path | None = None,
    progress: Progress = silent,
    device: Device = CPU,
) -> Checkpoint:
    """Load what `preview` understands; arguments and errors as of `transformer.checkpoint.opening.load`."""
    device = device_of(device)
    imported = preview(source, answers=answers, given=given, inside=inside)
    if imported.content is None:
        raise QuestionsError(imported.report) if imported.report.asked else incomplete(imported.report)
    return made(imported.content, kind_of(Path(source), inside=inside)[1], inside, progress, device=device)


def made(
    content: Content, source: Path, inside: Path | None = None, progress: Progress = silent, *, device: Device = CPU
) -> Checkpoint:
    """The checkpoint that a model that is understood makes; errors as of `assembled`."""
    with content.values() as values:
        return assembled(
            content.config,
            values,
            content.vocabularies,
            source=source,
            card=content.card,
            inside=inside,
            progress=progress,
            device=device,
        )


def incomplete(report: ImportReport) -> CheckpointError:
    """The obstacle to loading if there is no question to answer."""
    said = [say("{source}: {verdict}", source=report.source, verdict=report.verdict())]
    if report.missing:
        said.append(say("The file has no tensors for {names}.", names=first(report.missing)))
    if report.left_over:
        said.append(say("The purpose of these tensors is unknown: {names}.", names=first(report.left_over)))
    return CheckpointError(joined(" ", said))
