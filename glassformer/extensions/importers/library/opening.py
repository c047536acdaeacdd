"""Opening another program's model: preview, questions as an error, loading; which files are listed.

transformer.load("runs/model.pt")                               opens it, or raises its open questions
    transformer.load("runs/model.pt", answers={"n_heads": 4, ...})  answers them
    preview(Path("runs/model.pt")).report                           what was understood, before anything is loaded

A file of weights is imported by its names and shapes (those of `tutorials`), its tokenizer, and what the user answers:
there is a model once nothing is asked, missing or left over. `ForeignFormat` says which files and folders are listed
among checkpoints.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from glassformer.extensions.importers.library import import_inputs, kept_answers, keys, parts, unknown_tensors
from glassformer.extensions.importers.library.answer_ranking import scored
from glassformer.extensions.importers.library.cards import read_card
from glassformer.extensions.importers.library.config_settings import MOST_CONFIG
from glassformer.extensions.importers.library.import_inputs import NOTHING, ImportInputs, ImportRequest, Tokenizers
from glassformer.extensions.importers.library.kept_answers import NO_ANSWERS, answered, check_names
from glassformer.extensions.importers.library.readers import Reader, is_foreign_file, is_marians, readers, why_unopened
from glassformer.extensions.importers.library.renaming import check_agreement
from glassformer.extensions.importers.library.report import (
    NO_EMBEDDINGS,
    Content,
    Field,
    Imported,
    ImportReport,
    UnopenedTensors,
    inferred,
)
from glassformer.extensions.importers.library.tutorial_fields import Understanding, understand
from glassformer.extensions.importers.library.tutorials import LAYERS
from glassformer.extensions.importers.library.unknown_tensors import NAMES
from glassformer.extensions.tokenizers.vocabulary import CALLED
from glassformer.extensions.weight_files.pickles import whole_model
from glassformer.extensions.weight_files.weight_folder import ARRAYS, USUAL, chosen, nested
from glassformer.extensions.weight_files.weights import Weights, open_weights
from transformer.analysis.losses import Samples, read_samples
from transformer.checkpoint.consistency import expected_shapes, first
from transformer.checkpoint.free_memory import CPU, Device, Progress, device_of, silent
from transformer.checkpoint.listing import Entry, Format, LoadOptions
from transformer.checkpoint.load import CARD, CONFIG, Checkpoint, assembled
from transformer.checkpoint.snapshots import meant
from transformer.errors import CheckpointError, GlassformerError, UnansweredError, shown, within
from transformer.files.kinds import UNPACK
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence, joined, say
from transformer.model.config import MAX_LENGTH, ModelConfig

LENGTH = 512  # of texts, where a formula gives any number of positions


def import_weights(asked: ImportRequest, source: Path) -> Imported:
    """Read a file of weights, or the one in a folder.

    A CheckpointError names the tensor or the field: it is damaged, not a known Transformer, or an answer is refused.
    """
    with open_weights(source, inside=asked.inside) as weights:
        found = (one.import_weights(weights, replace(asked, source=source)) for one in readers())
        known = next(filter(None, found), None)
        return known or import_opened(weights, replace(asked, source=source))


def import_opened(weights: Weights, asked: ImportRequest) -> Imported:
    """As `import_weights`, for open weights, with tokenizers beside their source, if there is one."""
    answers = asked.answers
    check_names(answers, {*kept_answers.CONFIG_FIELDS, *NAMES}, label=weights.label)
    own = None if asked.given.card is None else read_card(asked.given.card, inside=asked.inside)
    with within(weights.label):
        understood = understand(weights, answers, lambda found: unknown_tensors.named(found, answers, weights), own)
    if any(map(understood.match.n_layers, LAYERS)):
        return _Import(weights, understood, asked).done()
    if stacks := parts.stacks(understood.match, answers) or parts.unnamed(understood.match, weights, answers):
        unopened = UnopenedTensors(understood.match, weights.again)
        return Imported(replace(understood.report, fields=tuple(stacks)), None, unopened)
    raise CheckpointError(
        "{label}: no tensor has a name that is usual for a layer of a tutorial's Transformer or of "
        "torch.nn.Transformer; the file has {names}. A Hugging Face model needs its config.json in the same folder.",
        label=weights.label,
        names=first([shown(name) for name in weights.tensors]),
    )


@dataclass(frozen=True)
class _Import:
    """What one import has before it."""

    weights: Weights
    understood: Understanding
    asked: ImportRequest

    def done(self) -> Imported:
        report, tokenizers = self._report()
        if not report.can_be_written or tokenizers is None:
            return Imported(report, None, UnopenedTensors(self.understood.match, self.weights.again))
        found, facts, config = self.understood.match, self.understood.facts, self._config(report)
        sizes = keys.shapes(found, self.weights, facts)
        check_agreement(found, self.weights, sizes, expected_shapes(config))
        learned = config.count_parameters() - sum(math.prod(sizes[name]) for name in found.standing_in)
        card = {"title": self.weights.label, "description": found.table.name, "parameters": learned}
        content = Content(config, tokenizers.stored, card, found, facts, self.weights.again)
        return Imported(report, content, named=self.understood.named)

    def _report(self) -> tuple[ImportReport, Tokenizers | None]:
        """The report with all fields and questions, and the tokenizers once the sizes of the tables are known."""
        weights, found, every = self.weights, self.understood, self.asked.answers
        said = unknown_tensors.used(every, weights)
        answers = {name: value for name, value in every.items() if name not in said}
        fields = unknown_tensors.with_questions(found.report.fields, found, weights, every)
        by_name = {one.name: _settled_length(one) for one in fields}
        tokenizers = self._tokenizers(by_name, answers)
        # A substitute while the sizes of the tables are asked: ids have questions all the same.
        later = None if self.asked.given.has_tokenizer else import_inputs.without((1, 1))
        of_ids = [
            self._padding(one) for one in import_inputs.settled(by_name, tokenizers or later, answers, found.said)
        ]
        rest = [one for one in by_name.values() if one.name not in CALLED]
        again = sorted((said & {*NAMES}) - by_name.keys())  # a question whose answer is not enough stays one
        named = [Field(name, "answered", every[name], kept_answers.YOU) for name in again]
        notes = (*found.report.notes, *(tokenizers.notes if tokenizers else ()))
        pieces = tokenizers.files if tokenizers else ()
        report = replace(found.report, fields=(*rest, *of_ids, *named), notes=notes, pieces=pieces)
        return answered(report, answers), tokenizers

    def _padding(self, field: Field) -> Field:
        """The question for the id of padding with what is usual: the one row of zeros of the embeddings, or none."""
        table, found = "src_table", self.understood.match
        if field.name != "pad_id" or field.how != "asked" or table not in found.sources.keys() - found.standing_in:
            return field
        rows = import_inputs.zero_rows(self.weights.read(found.sources[table].source))
        why = say("Usual: none, as for `nn.Embedding` without padding_idx, which would leave a row of zeros.")
        if rows:
            why = say("Usual: {id}, as this row of the embeddings is the only one that is all zeros.", id=rows[0])
        return replace(field, usual=(rows[0] if rows else None,), evidence=joined(" ", [field.evidence, why]))

    def _tokenizers(self, fields: Mapping[str, Field], answers: Mapping[str, Any]) -> Tokenizers | None:
        if not {"src_vocab_size", "tgt_vocab_size", "shared_vocab"} <= fields.keys():
            return None
        if any(field.name in NAMES and field.how == "asked" for field in fields.values()):
            return None  # another table may turn out to be the source's
        sizes = fields["src_vocab_size"].value, fields["tgt_vocab_size"].value
        shared = fields["shared_vocab"].value
        given, beside, inside = self.asked.given, self.asked.source, self.asked.inside
        if given.has_tokenizer:
            return import_inputs.opened(given, sizes, shared=shared, inside=inside)
        ids = [answers.get(name, self.understood.said.get(name, fields[name]).value) for name in CALLED]
        raw = import_inputs.without(sizes, [i for i in ids if type(i) is int and i >= 0])
        if beside is None or None in sizes:
            return raw
        return import_inputs.beside(beside, sizes, shared=shared, inside=inside, raw=raw)

    def _config(self, report: ImportReport) -> ModelConfig:
        values = {one.name: one.value for one in report.fields if one.name in kept_answers.CONFIG_FIELDS}
        try:
            with within(self.weights.label):
                return ModelConfig(**{"dropout": 0.0, "normalisation": (), **values})
        except TypeError:
            raise CheckpointError(
                "{label}: the sizes of the model cannot be worked out from its tensors: {problem}",
                label=self.weights.label,
                problem=report.verdict(),
            ) from None


def _settled_length(field: Field) -> Field:
    """The length of a text; where a formula gives the positions any will do, so nobody is asked."""
    if field.name == "max_len" and field.how == "asked":
        return inferred(field.name, LENGTH, say("Without a table of positions, the number of positions is unknown."))
    if field.name == "max_len" and field.value > MAX_LENGTH:
        return Field(field.name, field.how, MAX_LENGTH, say("This is the maximum length that this program can read."))
    return field


Kind = Literal["native", "weights"] | Reader
OF_A_FOLDER = (CONFIG, *USUAL)  # files that mean the folder around them; a reader's own do, too
OURS = ("format_version", "n_encoder_layers")  # keys of a config.json of this program
_MOST = 8  # choices that a message lists


def kind_of(source: Path, *, inside: Path | None = None) -> tuple[Kind, Path]:
    """The kind of a source: a checkpoint folder of this program, a folder that a reader reads, or weights.

    Also returns what to open: the folder, if the file needs the others. Refuses a missing source and a damaged
    config.json. `inside` is the real path of a folder that links may not leave.
    """
    if meant(source)[1] is not None:
        return "native", source
    if not source.is_file():
        kind, name = _of_folder(source, inside), ""
        if kind == "weights":
            with suppress(CheckpointError, OSError):  # opening it says what is wrong
                name = chosen(FolderFiles(source, inside=inside), source)
        return kind, source / name if "/" in name else source
    if source.name in OF_A_FOLDER or any(source.name in one.files for one in readers()):
        kind = _of_folder(source.parent, inside)
        if kind != "weights":
            return kind, source.parent
    return "weights", source


def _of_folder(folder: Path, inside: Path | None) -> Kind:
    files = FolderFiles(folder, inside=inside)
    if not files.has(CONFIG):
        return next((one for one in readers() if any(map(files.has, one.files))), "weights")
    record = files.json(CONFIG, limit=MOST_CONFIG)
    if not isinstance(record, Mapping) or any(key in record for key in OURS):
        return "native"  # what it is, loading it says
    return next((one for one in readers() if any(key in one.keys for key in record)), "weights")


class QuestionsError(UnansweredError):
    """A model cannot be loaded before some questions are answered; `report` has them, and all that is known."""

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
    choices = [kept_answers.as_said(choice.value) for choice in field.choices]
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

    `source` is a folder of transformers, a file of weights, or a folder with one; `answers` are those to the questions
    of an earlier report, by field name; `given` has tokenizers, for weights without them, and pairs of sentences, on
    which the choices of open questions are tried; `inside` is the real path of a folder that no link may leave, None if
    any will do. A CheckpointError if it is damaged, unknown or a checkpoint of this program, or an answer is refused; a
    DataError if the pairs cannot be read.
    """
    asked = ImportRequest(Path(source), answers, given, inside)
    imported = previewed(asked)
    if given.pairs is None or not imported.report.asked:
        return imported
    found = ranked(asked, imported.report, read_samples(given.pairs))
    if found.decided:
        imported = previewed(asked, found.decided)
    return replace(imported, report=imported.report.ranked(found))


def ranked(
    asked: ImportRequest, report: ImportReport, samples: Samples, *, progress: Progress = silent, device: Device = CPU
) -> ImportReport:
    """The report with the choices of open questions ranked by the model's loss on texts of its task, or decided.

    `progress` is called with the combinations tried and their number. Errors are those of `preview`; a DataError also
    says that a text has something that is not an id, for a model without a tokenizer.
    """

    def build(more: Mapping[str, Any]) -> Checkpoint | None:
        content = previewed(asked, more).content
        return None if content is None else made(content, asked.source or Path(), asked.inside, device=device)

    return scored(report, build, samples, progress=progress)


def previewed(asked: ImportRequest, more: Mapping[str, Any] = NO_ANSWERS) -> Imported:
    """What is understood with more answers, and with those that are kept beside the model, too."""
    source, given = asked.source or Path(), {**asked.answers, **more}
    kept = kept_answers.read(kind_of(source, inside=asked.inside)[1], inside=asked.inside)
    try:
        found = _understood(replace(asked, answers={**kept.answers, **given}), source)
    except CheckpointError as error:
        _understood(replace(asked, answers=given), source)  # raises, too, where what is kept is not at fault
        hint = say("That answer was read from {file}; change it there, or delete the file.", file=kept.file)
        raise CheckpointError(joined(" ", [error.sentence, hint])) from error
    return replace(found, report=kept.told(found.report, given))


def _understood(asked: ImportRequest, source: Path) -> Imported:
    kind, place = kind_of(source, inside=asked.inside)
    if kind == "native":
        raise CheckpointError(
            "{folder}: is already a checkpoint of this program; load it directly.", folder=as_typed(place, asked.inside)
        )
    return import_weights(asked, place) if kind == "weights" else kind.import_folder(place, asked)


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


def obstacle(report: ImportReport) -> CheckpointError:
    """What keeps a model from being loaded: questions, or else what is missing or unknown."""
    if report.lacks_embeddings:
        return CheckpointError("{label}: {problem}", label=report.source, problem=NO_EMBEDDINGS)
    if report.asked:
        return QuestionsError(report)
    said = [say("{label}: {problem}", label=report.source, problem=report.verdict())]
    if report.missing:
        said.append(say("The file has no tensors for {names}.", names=first(report.missing)))
    if report.left_over:
        said.append(say("The purpose of these tensors is unknown: {names}.", names=first(report.left_over)))
    return CheckpointError(joined(" ", said))


HOLDS = "foreign"  # it may or may not be a model


class ForeignFormat(Format):
    """Folders of Hugging Face's, and files of weights."""

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as weights are, or is another model, and stays in its folder."""
        try:
            known = is_foreign_file(file) or why_unopened(file) not in (None, UNPACK)
            return known and inside in file.resolve(strict=True).parents
        except (OSError, RuntimeError):
            return False

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry, with an error where such a format does not open here."""
        if (problem := why_unopened(place)) is not None:
            said = say("{label}: {problem}", label=as_typed(place, root), problem=problem)
            return Entry(name, place, said, name, root, holds=HOLDS)
        try:
            found = _is_foreign(place, root)
        except GlassformerError:
            return None
        return Entry(name, place, None, name, root, holds=HOLDS) if found else None

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether it comes from another program."""
        return kind_of(source, inside=inside)[0] != "native"

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """The model that it is understood to be; raises its open questions."""
        device, inside = device_of(how.device), how.inside
        with whole_model():
            imported = preview(source, answers=how.answers, given=how.given or NOTHING, inside=inside)
            if imported.content is None:
                raise obstacle(imported.report)
            checkpoint = made(imported.content, kind_of(source, inside=inside)[1], inside, how.progress, device=device)
        return replace(checkpoint, warnings=(*imported.report.decisions, *checkpoint.warnings))


def _is_foreign(place: Path, root: Path) -> bool:
    if place.is_dir():
        kind = _of_folder(place, root)
        lost = FolderFiles(place, inside=root).has(CARD)  # one of ours without its config
        with suppress(OSError):
            there = () if kind == "native" or lost else (*place.iterdir(), *nested(place))
            return isinstance(kind, Reader) or any(map(is_foreign_file, there))
        return False
    if place.suffix != ARRAYS:
        return is_foreign_file(place)
    with FolderFiles(root, inside=root).open(place.name) as (content, size):
        return is_marians(content, size)


FORMAT = ForeignFormat()
