"""Import a file of weights: what its names and shapes say, what its tokenizer says, and what the user answers.

    imported = import_weights(Path("runs/model.pt"), answers={"n_heads": 4, "pad_id": 0})

A model is given once nothing is asked, missing or left over. Names are those of `tutorials`.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library import import_inputs, keys, parts, unknown_tensors
from glassformer.extensions.importers.library.import_inputs import NOTHING, ImportInputs, Tokenizers, settled
from glassformer.extensions.importers.library.kept_answers import CONFIG_FIELDS, answered, check_names
from glassformer.extensions.importers.library.readers import readers
from glassformer.extensions.importers.library.renaming import check_agreement
from glassformer.extensions.importers.library.report import Content, Field, Imported, ImportReport, inferred
from glassformer.extensions.importers.library.tutorial_fields import Understanding, understand
from glassformer.extensions.importers.library.tutorials import LAYERS
from glassformer.extensions.importers.library.unknown_tensors import NAMES
from glassformer.extensions.tokenizers.vocabulary_files import CALLED
from glassformer.extensions.weight_files.library.weights import Weights, open_weights
from transformer.checkpoint.consistency import expected_shapes, first
from transformer.errors import CheckpointError, shown, within
from transformer.i18n import say
from transformer.model.config import MAX_LENGTH, ModelConfig

LENGTH = 512  # of texts, where a formula gives any number of positions


def import_weights(
    source: Path, *, answers: Mapping[str, Any], also: ImportInputs = NOTHING, inside: Path | None = None
) -> Imported:
    """Read a file of weights, or the one in a folder.

    The answers are to what an earlier report asked, or would ask: any field of config.json. `also` are tokenizers;
    `inside` is the real path of a folder that nothing may leave by a link. A CheckpointError names the tensor or the
    field: it is damaged, no Transformer that is known here, or an answer is refused.
    """
    open_again = partial(open_weights, source, inside=inside)
    with open_again() as weights:
        for one in readers():
            found = one.import_weights(weights, open_again, source=source, answers=answers, also=also, inside=inside)
            if found is not None:
                return found
        return import_opened(weights, open_again, answers=answers, also=also, beside=source, inside=inside)


def import_opened(
    weights: Weights,
    open_again: Callable[[], AbstractContextManager[Weights]],
    *,
    answers: Mapping[str, Any],
    also: ImportInputs = NOTHING,
    beside: Path | None = None,
    inside: Path | None = None,
) -> Imported:
    """Read weights that are open, of a file or folder, `beside` which tokenizers may lie, or of a model in memory.

    The rest is as `import_weights` has it.
    """
    check_names(answers, {*CONFIG_FIELDS, *NAMES}, label=weights.label)
    with within(weights.label):
        understood = understand(weights, answers, lambda found: unknown_tensors.named(found, answers, weights))
    if any(map(understood.match.n_layers, LAYERS)):
        return _Import(weights, understood, answers, also, beside, inside, open_again).done()
    if asked := parts.stacks(understood.match, answers):
        return Imported(replace(understood.report, fields=tuple(asked)), None)
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
    answers: Mapping[str, Any]
    also: ImportInputs
    beside: Path | None
    inside: Path | None
    open_again: Callable[[], AbstractContextManager[Weights]]

    def done(self) -> Imported:
        report, tokenizers = self._report()
        if not report.can_be_written or tokenizers is None:
            return Imported(report, None)
        found, config = self.understood.match, self._config(report)
        sizes = keys.shapes(found, self.weights, {})
        check_agreement(found, self.weights, sizes, expected_shapes(config))
        absent = sum(math.prod(sizes[name]) for name in found.standing_in)
        learned = config.count_parameters() - absent
        card = {"title": self.weights.label, "description": found.table.name, "parameters": learned}
        return Imported(report, Content(config, tokenizers.stored, card, found, {}, self.open_again))

    def _report(self) -> tuple[ImportReport, Tokenizers | None]:
        """The report with all fields and questions, and the tokenizers once the sizes of the tables are known."""
        weights, found = self.weights, self.understood
        said = unknown_tensors.used(self.answers, weights)
        answers = {name: value for name, value in self.answers.items() if name not in said}
        fields = unknown_tensors.with_questions(found.report.fields, found, weights, self.answers)
        by_name = {one.name: _settled_length(one, answers) for one in fields}
        tokenizers = self._tokenizers(by_name, answers)
        # What stands for them while the sizes of the tables are asked: ids have questions all the same.
        later = None if self.also.has_tokenizer else import_inputs.without((1, 1))
        of_ids = settled(by_name, tokenizers or later, answers)
        rest = [one for one in by_name.values() if one.name not in CALLED]
        again = sorted((said & {*NAMES}) - by_name.keys())  # a question whose answer is not enough stays one
        named = [Field(name, "answered", self.answers[name], say("Your answer.")) for name in again]
        notes = (*found.report.notes, *(tokenizers.notes if tokenizers else ()))
        pieces = tokenizers.files if tokenizers else ()
        report = replace(found.report, fields=(*rest, *of_ids, *named), notes=notes, pieces=pieces)
        return answered(report, answers), tokenizers

    def _tokenizers(self, fields: Mapping[str, Field], answers: Mapping[str, Any]) -> Tokenizers | None:
        if not {"src_vocab_size", "tgt_vocab_size", "shared_vocab"} <= fields.keys():
            return None
        if any(field.name in NAMES and field.how == "asked" for field in fields.values()):
            return None  # another table may turn out to be the source's
        sizes = fields["src_vocab_size"].value, fields["tgt_vocab_size"].value
        shared = fields["shared_vocab"].value
        if self.also.has_tokenizer:
            return import_inputs.opened(self.also, sizes, shared=shared, inside=self.inside)
        ids = [answers.get(name, fields[name].value) for name in CALLED]
        raw = import_inputs.without(sizes, [i for i in ids if type(i) is int and i >= 0])
        if self.beside is None or None in sizes:
            return raw
        return import_inputs.beside(self.beside, sizes, shared=shared, inside=self.inside, raw=raw)

    def _config(self, report: ImportReport) -> ModelConfig:
        values = {one.name: one.value for one in report.fields if one.name in CONFIG_FIELDS}
        try:
            with within(self.weights.label):
                return ModelConfig(**{"dropout": 0.0, "normalisation": (), **values})
        except TypeError:
            raise CheckpointError(
                "{label}: the sizes of the model cannot be worked out from its tensors: {problem}",
                label=self.weights.label,
                problem=report.verdict(),
            ) from None


def _settled_length(field: Field, answers: Mapping[str, Any]) -> Field:
    """The length of a text; where a formula gives the positions any will do, so nobody is asked."""
    if field.name == "max_len" and field.how == "asked":
        return inferred(field.name, LENGTH, say("Without a table of positions, the number of positions is unknown."))
    if field.name == "max_len" and field.value > MAX_LENGTH:
        return Field(field.name, field.how, MAX_LENGTH, say("This is the maximum length that this program can read."))
    return field
