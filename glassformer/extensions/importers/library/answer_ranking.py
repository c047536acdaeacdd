"""Ranks possible answers by the model's loss on sample texts.

    report = scored(report, build, samples)
    print(report)           # each asked field has its choices with their losses, best first
    best_answers(report)    # what the user may confirm

A choice's score is its loss with the best values of the other fields, as far as they were tried
(`extensions.importers.library.answer_search`). Nothing is answered: what the texts cannot decide stays a question.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from glassformer.extensions.importers.library.answer_search import FEW, Build, Progress, Trials
from glassformer.extensions.importers.library.import_inputs import FIRST, likely_ids
from glassformer.extensions.importers.library.kept_answers import as_told
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from glassformer.extensions.tokenizers.vocabulary_files import CALLED
from transformer.analysis.losses import MASKS, Answers, Loss, Samples, first_output, text_ids
from transformer.analysis.significance import POOR, verdict
from transformer.checkpoint.free_memory import silent
from transformer.errors import ConfigError, QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.runs.model_protocols import Scorable
from transformer.text.tokenizer import RawIds

ASSUMED: Answers = {"max_len": 1024}  # what has no choices, while others are tried
SMALL = 5_000_000  # parameters
NOT_TRIED = ("source_language", "target_language", "ignored")  # questions about the texts, or of no effect


POINTS_TO_THE_DOCTOR = say(
    "No answers fit these sentence pairs. If the pairs belong to the model's task, something may have gone wrong in "
    "training, for example a missing causal mask or shifted positions. In that case, answer the questions from your "
    "code, not from these losses. Then open the Doctor with the same pairs: it points to the faulty line of code."
)


def scored(report: ImportReport, build: Build, samples: Samples, *, progress: Progress = silent) -> ImportReport:
    """The report with the choices of all that is asked or assumed ranked by the loss with them.

    `build` is called with an answer to each; again only for answers with other parameters. A DataError says that a text
    for a model without a tokenizer has something that is not an id.
    """
    if not report.tried:
        return report
    guess = first_guess(report)
    base = build(guess)
    if base is None:
        return _noted(report, say("No answer could be tried: some tensors are missing or left over."))
    fitting = _fitting(samples, base)
    problem = _problem(base, fitting)
    if problem is not None:
        return _noted(report, problem)
    choices = {one.name: _choices(one, base) for one in report.tried if one.name not in NOT_TRIED}
    choices = {name: values for name, values in choices.items() if values}
    trials = Trials(build, base, fitting, choices, guess, progress)
    trials.keep(guess)
    with _few_threads(base):
        best = trials.search()
    least, guessing, notes = trials.least(best), _guessing(base), list(_work(trials))
    if least >= guessing:
        notes.append(_no_better(len(fitting), least, guessing))
        if samples.targets:  # then the order of the answers is chance
            return _noted(report, *notes, POINTS_TO_THE_DOCTOR)
    fields = tuple(_ranked(one, trials, best) if one.name in choices else one for one in report.fields)
    hopeless = bool(samples.targets) and least > POOR * guessing
    return _noted(replace(report, fields=fields), *notes, *([POINTS_TO_THE_DOCTOR] if hopeless else []))


def _no_better(n: int, loss: float, guessing: float) -> Sentence:
    return say("Even the best answers are no better than guessing: their loss on {texts} is {loss:.3g}; the loss "
               "of guessing is {guessing:.3g}.", texts=say_n("{n} text", "{n} texts", n), loss=loss,
               guessing=guessing)  # fmt: skip


@contextmanager
def _few_threads(base: Scorable) -> Iterator[None]:
    """One thread for a small model: where others keep the processors busy, waiting for a second costs ten times."""
    before = torch.get_num_threads()
    if base.model.config.count_parameters() < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def best_answers(report: ImportReport) -> dict[str, Any]:
    """The first choice of each asked field that was tried, and what was assumed wrongly; the best combination."""
    return {
        one.name: one.choices[0].value
        for one in report.tried
        if one.choices
        and one.choices[0].score is not None
        and (one.how == "asked" or one.choices[0].value != one.value)
    }


def first_guess(report: ImportReport) -> dict[str, Any]:
    """An answer to each question, of ids that differ."""
    taken = {one.value for one in report.fields if one.name in CALLED}
    guess: dict[str, Any] = {}
    for one in report.tried:
        if one.name in CALLED and not one.choices:
            guess[one.name] = next(i for i in (FIRST[one.name], *range(len(taken) + 1)) if i not in taken)
            taken.add(guess[one.name])
        elif one.is_assumed:
            guess[one.name] = one.value
        else:
            guess[one.name] = one.choices[0].value if one.choices else ASSUMED.get(one.name)
            if one.name == "ignored":
                guess[one.name] = [choice.value for choice in one.choices]
    return guess


def _choices(one: Field, base: Scorable) -> list[Any]:
    """The values that a field may have, likeliest first."""
    if one.choices or one.name not in CALLED:
        return [choice.value for choice in one.choices]
    config, tokenizer = base.model.config, base.src_tokenizer
    named = None if isinstance(tokenizer, RawIds) else tokenizer
    size = min(config.src_vocab_size, config.tgt_vocab_size)
    return list(likely_ids(one.name, size, named, base.model.src_table))


def _fitting(samples: Samples, base: Scorable) -> Samples:
    """The texts that the model can read, whatever stands around them."""
    config = base.model.config
    around = max(2, len(config.source_start) + len(config.source_end), len(config.forced_ids) + 1)
    room = config.max_len - around

    def fits(i: int) -> bool:
        lengths = [len(text_ids(samples.sources[i], base.src_tokenizer, config.normalisation))]
        if samples.targets:
            lengths.append(len(text_ids(samples.targets[i], base.tgt_tokenizer)))
        together = max(lengths) if base.model.anatomy.reads else sum(lengths)
        return lengths[0] > 0 and together <= room

    return samples.only([i for i in range(len(samples)) if fits(i)])


def _problem(base: Scorable, fitting: Samples) -> Sentence | None:
    """Why nothing can be tried, if so."""
    parts = base.model.anatomy
    if not parts.gives_logits:
        return say("No answer could be tried: the model outputs vectors, not logits, so no loss can be computed.")
    if parts.fills and all(base.src_tokenizer.id_of(name) is None for name in MASKS):
        names = ", ".join(MASKS)
        return say(
            "No answer could be tried: the tokenizer has none of the mask tokens {names}, so no token can be hidden.",
            names=names,
        )
    return None if len(fitting) else say("No answer could be tried: no text is short enough for the model.")


def _ranked(one: Field, trials: Trials, best: Mapping[str, Any]) -> Field:
    """A field with its choices by their losses, that of the best combination first; what was not tried last."""
    values, losses = trials.choices[one.name], trials.losses(one.name)
    first = trials.place(one.name, best[one.name])
    order = sorted(
        range(len(values)), key=lambda i: (i != first, round(losses[i].mean, 4) if i in losses else math.inf)
    )
    outputs = {i: _output(trials, {**best, one.name: values[i]}) for i in order if i in losses}
    choices = tuple(Choice(values[i], losses[i].mean if i in losses else None, outputs.get(i)) for i in order)
    tried: list[tuple[str, Loss]] = [(as_told(one.name, values[i]), losses[i]) for i in order if i in losses]
    if not tried or trials.least(best) >= _guessing(trials.base):  # a note says that of all fields at once
        return replace(one, choices=choices)
    said = verdict(
        tried, guessing=_guessing(trials.base), written=_writes_itself(trials), pairs=bool(trials.samples.targets)
    )
    return replace(one, choices=choices, evidence=joined(" ", [one.evidence, said]))


def _guessing(base: Scorable) -> float:
    """The loss of a piece, if all were equally likely."""
    return math.log(base.model.config.tgt_vocab_size)


def _output(trials: Trials, answers: Answers) -> str | None:
    """What a small model writes for the first text, which shows nonsense at first sight."""
    model, parts = trials.base.model, trials.base.model.anatomy
    if not (parts.reads and parts.writes) or model.config.count_parameters() >= SMALL:
        return None
    try:
        tried = trials.model(answers)
        return None if tried is None else first_output(tried, trials.samples)
    except (ConfigError, QueryError):
        return None


def _work(trials: Trials) -> Iterator[Sentence]:
    """How much was tried, and what was not tried together."""
    few, whole = trials.counts()
    tried = say("The answers were ranked by trying {whole} on {texts}, and {few} on the first {n_few} of these "
                "texts.", whole=say_n("{n} combination", "{n} combinations", whole),
                texts=say_n("{n} text", "{n} texts", len(trials.samples)), few=say_n("{n} more", "{n} more", few),
                n_few=min(FEW, len(trials.samples)))  # fmt: skip
    yield tried
    together = {*trials.strong(), *trials.weak(), "pad_id", "unk_id"}
    alone = [name for name in trials.choices if name not in together]
    if alone:
        yield say(
            "This model is too large to try all combinations. {fields}: tried one field at a time, with all "
            "other answers kept fixed.",
            fields=", ".join(alone),
        )
    if _writes_itself(trials):
        yield say(
            "Without targets, only the model's own certainty can be compared, but a wrong model can be "
            "certain, too. Provide sentence pairs."
        )


def _writes_itself(trials: Trials) -> bool:
    """Whether the losses are those of what the model itself writes."""
    parts = trials.base.model.anatomy
    return parts.reads and parts.writes and not trials.samples.targets


def _noted(report: ImportReport, *notes: Sentence) -> ImportReport:
    return replace(report, notes=(*report.notes, *notes))
