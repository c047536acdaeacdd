"""Ranks possible answers by the model's loss on sample texts, and searches their combinations for the lowest.

report = scored(report, build, samples)
    print(report)           # each asked field has its choices with their losses, best first
    best_answers(report)    # what the user may confirm

A choice's score is its loss with the best values of the other fields, as far as they were tried. Nothing is answered:
what the texts cannot decide stays a question.

All fields together have too many combinations. Three steps find the best one:

1. The fields that act on everything (place of the norms, scale, heads, start and end ids) in every combination, on
   few texts: where two of them are wrong, getting one right shows nothing.
2. The best of these with every combination of the others, such as the activation, on few texts.
3. From the best of those, one field after another, each choice with the others as they are, on all texts, until no
   change is better.

The number of combinations and the model's size bound each step: fields beyond that are tried in the third only.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch

from glassformer.extensions.importers.library.import_inputs import FIRST, likely_ids
from glassformer.extensions.importers.library.kept_answers import as_told
from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from glassformer.extensions.tokenizers.vocabulary_files import CALLED
from transformer.analysis.losses import MASKS, Answers, Loss, Samples, Variants, first_output, loss_of, text_ids
from transformer.analysis.significance import POOR, SAME, same, verdict
from transformer.checkpoint.free_memory import silent
from transformer.errors import CheckpointError, ConfigError, QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.runs.query import Scorable
from transformer.text.tokenizer import RawIds

Build = Callable[[Answers], Scorable | None]
"""A model with these answers to all that is asked; None if there is none."""
Progress = Callable[[int, int], object]
"""Told how many combinations were tried, and how many there can be at most."""

FEW = 4  # texts of the first two steps
STARTS = 3  # combinations that go on to the next step
ENDS = 2  # combinations that go on to the last one
ROUNDS = 4
MOST = 512  # combinations of one step
WRITTEN = 3  # tokens that are written for one that is read, about
WORK = 1.5e12  # multiply-adds of one step: about a minute
STORED = ("prefix", "src_table", "tgt_table", "output_table", "tie_output", "positions", "output_bias", *PARTS)
"""Fields by which other tensors of the file are read: a model is built for each combination of their values."""
AROUND = ("bos_id", "eos_id", "decoder_start_id", "prepend_source_bos", "append_source_eos")
STRONGEST = ("norm", "scale_embedding", "norm_kind", *AROUND[:3], "n_heads", "score_scale", *AROUND[3:])


@dataclass
class Trials:
    """What was tried so far."""

    build: Build  # makes a model
    base: Scorable  # one that it made
    samples: Samples  # the texts
    choices: Mapping[str, Sequence[Any]]  # the values that each field may have
    fixed: Answers  # answers to what is not tried
    progress: Progress  # called after each try
    # The loss of each combination on the first so many texts; None if no model has it.
    found: dict[tuple[int, tuple[Any, ...]], Loss | None] = field(default_factory=dict)
    # The last model that was built, by the answers of `STORED`.
    built: dict[tuple[Any, ...], Variants | None] = field(default_factory=dict)

    def keep(self, guess: Answers) -> None:
        """Store what the base was built with, to build it once."""
        self.built[tuple(guess[name] for name in self.choices if name in STORED)] = Variants(self.base)

    def search(self) -> dict[str, Any]:
        """The best combination, by the names of the fields."""
        first = {name: values[0] for name, values in self.choices.items()}
        few = min(FEW, len(self.samples))
        starts = self._best([first, *self._combinations([first], self.strong())], few, STARTS)
        starts = self._best([first, *self._combinations(starts, self.weak())], few, ENDS)
        found = [self._descend(one) for one in starts]
        return self._best(found, len(self.samples), 1)[0]  # of equals the likelier, whatever rounding says

    def strong(self) -> list[str]:
        """The fields of the first step, which act on everything; ids last, as they need no other model."""
        names = [name for name in (*STORED, *STRONGEST) if name in self.choices]
        return sorted(self._together(names, 1), key=AROUND.__contains__)

    def weak(self) -> list[str]:
        """The fields of the second step: the others, but for those ids that mean nothing for most texts."""
        first = {*self.strong(), "pad_id", "unk_id"}
        return self._together([name for name in self.choices if name not in first], STARTS)

    def losses(self, name: str) -> dict[int, Loss]:
        """The best loss of each choice of a field on all texts, by its place among the choices."""
        place = list(self.choices).index(name)
        best: dict[int, Loss] = {}
        for (n, values), loss in self.found.items():
            if n == len(self.samples) and loss is not None and math.isfinite(loss.mean):
                choice = self.place(name, values[place])
                best[choice] = min(best.get(choice, loss), loss, key=lambda one: one.mean)
        return best

    def least(self, answers: Answers) -> float:
        """The loss of a piece on all texts with some answers; infinite where no model has them."""
        return self._mean(answers, len(self.samples))

    def counts(self) -> tuple[int, int]:
        """How many combinations were tried on few texts alone, and how many on all."""
        whole = sum(1 for n, _ in self.found if n == len(self.samples))
        return len(self.found) - whole, whole

    def place(self, name: str, value: Any) -> int:
        """Where a value stands among the choices; 1 is not True."""
        return next(i for i, one in enumerate(self.choices[name]) if type(one) is type(value) and one == value)

    def _together(self, names: Sequence[str], n_starts: int) -> list[str]:
        """The first of some fields, as many as can be tried in every combination."""
        most = min(MOST, max(1, int(WORK / self._work()))) // n_starts
        kept: list[str] = []
        for name in names:
            if math.prod(len(self.choices[one]) for one in (*kept, name)) <= most:
                kept.append(name)
        return kept

    def _work(self) -> float:
        """Multiply-adds of one try on few texts, about: each parameter once a token."""
        config, few = self.base.model.config, self.samples.only(range(min(FEW, len(self.samples))))
        texts = ((few.sources, self.base.src_tokenizer), (few.targets, self.base.tgt_tokenizer))
        n_tokens = sum(len(text_ids(text, tokenizer)) + 1 for side, tokenizer in texts for text in side)
        if not few.targets and self.base.model.anatomy.reads:
            n_tokens *= WRITTEN
        return float(n_tokens * config.count_parameters())

    def _combinations(self, starts: Sequence[Answers], names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Every combination of the choices of some fields, with each start."""
        for start in starts:
            for values in product(*(self.choices[name] for name in names)):
                yield {**start, **dict(zip(names, values, strict=True))}

    def _best(self, tried: Sequence[dict[str, Any]], n_texts: int, most: int) -> list[dict[str, Any]]:
        """The best combinations; of equals the first."""
        several = {tuple(one.items()): one for one in tried}
        return sorted(several.values(), key=lambda one: round(self._mean(one, n_texts), 4))[:most]

    def _descend(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """Better and better answers, one field after another; what is not better does not replace what is."""
        best = dict(start)
        for _ in range(ROUNDS):
            before = dict(best)
            for name, values in self.choices.items():
                tried = [{**best, name: value} for value in values]
                least = min(self._mean(one, len(self.samples)) for one in tried) + SAME
                first = next((one for one in tried if self._mean(one, len(self.samples)) <= least), best)
                best = first if self._better(first, best) else best
            if best == before:
                break
        return best

    def _better(self, one: Answers, other: Answers) -> bool:
        a, b = self._loss(one, len(self.samples)), self._loss(other, len(self.samples))
        return a is not None and (b is None or (a.mean < b.mean and not same(a, b)))

    def _mean(self, answers: Answers, n_texts: int) -> float:
        loss = self._loss(answers, n_texts)
        return math.inf if loss is None or not math.isfinite(loss.mean) else loss.mean

    def _loss(self, answers: Answers, n_texts: int) -> Loss | None:
        key = n_texts, tuple(answers.values())
        if key not in self.found:
            self.found[key] = self._tried(answers, self.samples.only(range(n_texts)))
            self.progress(len(self.found), max(len(self.found), self._most()))
        return self.found[key]

    def _tried(self, answers: Answers, samples: Samples) -> Loss | None:
        try:
            model = self.model(answers)
            return None if model is None else loss_of(model, samples, with_end="eos_id" in self.choices)
        except (ConfigError, QueryError):  # answers that contradict each other, or numbers that are not finite
            return None

    def model(self, answers: Answers) -> Scorable | None:
        """The model with some answers; None if there is none."""
        variants = self._variants({name: value for name, value in answers.items() if name in STORED})
        rest = {name: value for name, value in answers.items() if name not in STORED}
        return None if variants is None else variants.get(rest)

    def _variants(self, stored: Answers) -> Variants | None:
        """The models of some parameters; those of the last ones are kept, as a model may fill half of the memory."""
        key = tuple(stored.values())
        if key not in self.built:
            self.built.clear()
            try:
                model = self.build({**self.fixed, **stored})
            except (ConfigError, CheckpointError):
                model = None  # no model has these
            self.built[key] = None if model is None else Variants(model)
        return self.built[key]

    def _most(self) -> int:
        """How many combinations there can be at most."""
        jointly = (
            math.prod(len(self.choices[name]) for name in self.strong()),
            STARTS * math.prod(len(self.choices[name]) for name in self.weak()),
        )
        return sum(jointly) + ENDS * ROUNDS * sum(map(len, self.choices.values()))


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
