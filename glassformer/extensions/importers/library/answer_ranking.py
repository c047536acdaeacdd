"""Ranking of import answers by the model's loss on sample texts: a staged search, best answers, what pairs decide.

    report = scored(report, build, samples)
    print(report)           # the choices of each asked field with their losses, best first, and what pairs decided
    best_answers(report)    # what the user may confirm

All fields together have too many combinations. Three steps find the one with the least loss:

1. The fields that act on everything (place of the norms, scale, heads, start and end ids) in every combination, on
   few texts: where two of them are wrong, getting one right shows nothing.
2. The best of these with every combination of the next fields, such as the activation; and so on, on few texts.
3. From the best of those, one field after another, each choice with the others as they are, on all texts, until no
   change is better.

The number of combinations and the model's size say how many fields one step has. A choice's score is its loss with the
best values of the other fields, as far as they were tried. Pairs decide a field if the model knows them with one choice
and surely less with each other one, whatever the temperature. What they cannot distinguish stays a question.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import torch

from glassformer.extensions.importers.library.import_inputs import FIRST, likely_ids
from glassformer.extensions.importers.library.kept_answers import as_told
from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.importers.library.report import Choice, Field, ImportReport
from glassformer.extensions.tokenizers.vocabulary import CALLED
from glassformer.extensions.wirings.catalogue import titles
from glassformer.extensions.wirings.readings import PairIds, Reading, batches, losses_of_batches, pairs_of
from glassformer.extensions.wirings.search import FEWEST, GAIN, KNOWN, WiringSearch
from transformer.analysis.losses import Answers, Loss, Samples, Variant, Variants, first_output, loss_of, text_ids
from transformer.analysis.significance import POOR, SAME, same, surely_better, verdict
from transformer.checkpoint.free_memory import Progress, silent
from transformer.errors import CheckpointError, ConfigError, QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.taps import NO_TAP
from transformer.runs.query import Scorable
from transformer.text.tokenizer import RawIds

Build = Callable[[Answers], Scorable | None]
"""A model with these answers to all that is asked; None if there is none."""

FEW = 4  # texts of the first steps
STARTS = 3  # combinations that go on to the next step
ENDS = 2  # combinations that go on to the last one
ROUNDS = 4
MOST = 512  # combinations of one step
WRITTEN = 3  # tokens that are written for one that is read, about
WORK = 1.5e12  # multiply-adds of one step: about a minute
STORED = ("prefix", "src_table", "tgt_table", "output_table", "tie_output", "positions", "output_bias", *PARTS)
"""Fields by which other tensors of the file are read: a model is built for each combination of their values."""
AROUND = ("bos_id", "eos_id", "decoder_start_id", "prepend_source_bos", "append_source_eos")
STRONGEST = (*STORED, "norm", "scale_embedding", "norm_kind", *AROUND, "n_heads", "score_scale")
LAST = ("pad_id", "unk_id")  # which mean nothing for most texts


@dataclass
class AnswerSearch:
    """What was tried so far."""

    build: Build  # makes a model
    base: Scorable  # one that it made
    samples: Samples  # the texts
    choices: Mapping[str, Sequence[Any]]  # the values that each field may have
    fixed: Answers  # answers to what is not tried
    progress: Progress  # told how many combinations were tried, and how many there can be at most
    # The losses of each combination on the first so many texts, as `_losses` has them; None if no model has it.
    found: dict[tuple[int, tuple[Any, ...]], list[Loss] | None] = field(default_factory=dict)
    problem: Sentence = say("some tensors are missing or left over.")  # of the last combination that no model has

    def __post_init__(self) -> None:
        stored = tuple(self.fixed[name] for name in self.choices if name in STORED)
        self._built: tuple[tuple[Any, ...], Variants | None] = stored, Variants(self.base)  # of the last answers

    def run(self) -> dict[str, Any]:
        """The best combination, by the names of the fields."""
        first = {name: values[0] for name, values in self.choices.items()}
        starts = [first]
        for names in self.steps:
            several = product(starts, *(self.choices[name] for name in names))
            combined = [{**start, **dict(zip(names, values, strict=True))} for start, *values in several]
            last = names == self.steps[-1]
            starts = self._best([first, *combined], min(FEW, len(self.samples)), ENDS if last else STARTS)
        return self._best(map(self._descend, starts), len(self.samples), 1)[0]

    @cached_property
    def steps(self) -> list[list[str]]:
        """The fields, strongest first, in groups that are tried in every combination: a try costs what is read."""
        few, steps = self.samples.only(range(min(FEW, len(self.samples)))), list[list[str]]()
        texts = ((few.sources, self.base.src_tokenizer), (few.targets, self.base.tgt_tokenizer))
        n_tokens = sum(len(text_ids(text, tokenizer)) + 1 for side, tokenizer in texts for text in side)
        n_tokens *= WRITTEN if self.writes_itself else 1
        most = min(MOST, int(WORK / (n_tokens * self.base.model.config.count_parameters())))
        rest = [name for name in dict.fromkeys((*STRONGEST, *self.choices)) if name in self.choices.keys() - LAST]
        while rest:
            together, several = list[str](), STARTS if steps else 1
            for name in rest:
                if not together or several * len(self.choices[name]) <= most:
                    together.append(name)
                    several *= len(self.choices[name])
            rest = [name for name in rest if name not in together]
            steps.append(sorted(together, key=AROUND.__contains__))  # ids last, as they need no other model
        return steps

    @property
    def writes_itself(self) -> bool:
        """Whether the losses are those of what the model itself writes."""
        parts = self.base.model.anatomy
        return parts.reads and parts.writes and not self.samples.targets

    @property
    def guessing(self) -> float:
        """The loss of a piece, if all were equally likely."""
        return math.log(self.base.model.config.tgt_vocab_size)

    def losses(self, name: str) -> dict[int, list[Loss]]:
        """The best losses of each choice of a field on all texts, by its place among the choices."""
        place, best = list(self.choices).index(name), dict[int, list[Loss]]()
        for (n, values), losses in self.found.items():
            if n == len(self.samples) and losses is not None:
                choice = self.place(name, values[place])
                best[choice] = min(best.get(choice, losses), losses, key=lambda one: one[0].mean)
        return best

    def mean(self, answers: Answers, n_texts: int | None = None) -> float:
        """The loss of a piece on the first texts, or all, with some answers; infinite where no model has them."""
        n = len(self.samples) if n_texts is None else n_texts
        key = n, tuple(answers.values())
        if key not in self.found:
            self.found[key] = self._tried(answers, self.samples.only(range(n)))
            self.progress(len(self.found), max(len(self.found), self._most))
        losses = self.found[key]
        return math.inf if losses is None else losses[0].mean

    def place(self, name: str, value: Any) -> int:
        """Where a value stands among the choices; 1 is not True."""
        return next(i for i, one in enumerate(self.choices[name]) if type(one) is type(value) and one == value)

    def model(self, answers: Answers) -> Variant | None:
        """The model with some answers; None if there is none. One file's model is kept: it may fill half the memory."""
        stored = {name: value for name, value in answers.items() if name in STORED}
        key = tuple(stored.values())
        if self._built[0] != key:
            self._built = (), None  # lets go of the last one first
            try:
                made = self.build({**self.fixed, **stored})
            except (ConfigError, CheckpointError):
                made = None  # no model has these
            self._built = key, None if made is None else Variants(made)
        variants = self._built[1]
        rest = {name: value for name, value in answers.items() if name not in STORED}
        return None if variants is None else variants.get(rest)

    @cached_property
    def _most(self) -> int:
        """How many combinations there can be at most."""
        jointly = [math.prod(len(self.choices[name]) for name in names) for names in self.steps]
        return STARTS * sum(jointly) + ENDS * ROUNDS * sum(map(len, self.choices.values()))

    def _best(self, tried: Iterable[dict[str, Any]], n_texts: int, most: int) -> list[dict[str, Any]]:
        """The best combinations; of equals the first, which is likelier, whatever rounding says."""
        several = {tuple(one.items()): one for one in tried}
        return sorted(several.values(), key=lambda one: round(self.mean(one, n_texts), 4))[:most]

    def _descend(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """Better and better answers, one field after another; what is not better does not replace what is."""
        best = dict(start)
        for _ in range(ROUNDS):
            before = dict(best)
            for name, values in self.choices.items():
                tried = [{**best, name: value} for value in values]
                least = min(map(self.mean, tried)) + SAME
                first = next((one for one in tried if self.mean(one) <= least), best)
                best = first if self.mean(first) < self.mean(best) - SAME else best
            if best == before:
                break
        return best

    def _tried(self, answers: Answers, samples: Samples) -> list[Loss] | None:
        try:
            model = self.model(answers)
            losses = None if model is None else _losses(model, samples, with_end="eos_id" in self.choices)
        except (ConfigError, QueryError) as error:  # answers that contradict each other, or numbers that are not finite
            self.problem = error.sentence
            return None
        return losses if losses is not None and math.isfinite(losses[0].mean) else None


def _losses(one: Scorable, samples: Samples, *, with_end: bool) -> list[Loss]:
    """The loss on each text, and after it at other temperatures, as far as there are pieces to be predicted."""
    parts = one.model.anatomy
    if not parts.writes or (parts.reads and not samples.targets):
        return [loss_of(one, samples)]
    ended = parts.reads or with_end or not samples.targets
    pairs, reading = pairs_of(one, samples), Reading(end_counts=ended)
    if with_end and not samples.targets:  # the text is a whole one
        pairs = [PairIds(pair.source[:1], pair.source[1:]) for pair in pairs]
    ready = batches(one.model.config, pairs, reading)
    return losses_of_batches(one.model, ready, len(pairs), lambda: NO_TAP, lambda: None)


ASSUMED: Answers = {"max_len": 1024}  # what has no choices, while others are tried
SMALL = 5_000_000  # parameters
SECONDS = 10.0  # for the mistake that explains pairs which no answers fit
NOT_TRIED = ("source_language", "target_language", "ignored")  # questions about the texts, or of no effect
IDLE = ("pad_id",)  # nothing depends on it where pairs do not show it: a text alone is never padded
POINTS_TO_THE_DOCTOR = say(
    "No answers fit these sentence pairs. If the pairs belong to the model's task, something may have gone wrong in "
    "training, for example a missing causal mask or shifted positions. In that case, answer the questions from your "
    "code, not from these losses. Then open the Doctor with the same pairs: it points to the faulty line of code."
)


def scored(report: ImportReport, build: Build, samples: Samples, *, progress: Progress = silent) -> ImportReport:
    """The report with the choices of all that is asked or assumed ranked by the loss, or decided by pairs.

    `build` is called with an answer to each; again only for answers with other parameters. A DataError says that a text
    for a model without a tokenizer has something that is not an id.
    """
    if not report.tried:
        return report
    guess = first_guess(report)
    if (base := build(guess)) is None:
        return _noted(report, say("No answer could be tried: some tensors are missing or left over."))
    fitting = _fitting(samples, base)
    if not len(fitting):
        return _noted(report, say("No answer could be tried: no text is short enough for the model."))
    choices = {one.name: found for one in report.tried if one.name not in NOT_TRIED and (found := _choices(one, base))}
    search = AnswerSearch(build, base, fitting, choices, guess, progress)
    with _few_threads(base):
        best = search.run()
        least, pairs = search.mean(best), bool(samples.targets)
        if not math.isfinite(least):
            return _noted(report, say("No answer could be tried: {problem}", problem=search.problem))
        notes = list(_work(search, least))
        if pairs and least > POOR * search.guessing:
            notes += [POINTS_TO_THE_DOCTOR, *_explained(search, best)]
    if pairs and least >= search.guessing:  # then the order of the answers is chance
        return _noted(report, *notes)
    fields = tuple(_ranked(one, search, best) if one.name in choices else one for one in report.fields)
    return _noted(replace(report, fields=fields), *notes)


@contextmanager
def _few_threads(base: Scorable) -> Iterator[None]:
    """One thread for a small model: where others keep the processors busy, waiting for a second costs ten times."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if base.model.config.count_parameters() < SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def best_answers(report: ImportReport) -> dict[str, Any]:
    """The first choice of each asked field that was tried, and what was assumed wrongly; the best combination."""
    first = {one.name: one.choices[0] for one in report.tried if one.choices and one.choices[0].score is not None}
    assumed = {one.name: one.value for one in report.tried if one.how != "asked"}
    return {name: one.value for name, one in first.items() if name not in assumed or assumed[name] != one.value}


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
        elif one.name == "ignored":
            guess[one.name] = [choice.value for choice in one.choices]
        else:
            guess[one.name] = one.choices[0].value if one.choices else ASSUMED.get(one.name)
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
    config, reads = base.model.config, base.model.anatomy.reads
    around = max(2, len(config.source_start) + len(config.source_end), len(config.forced_ids) + 1)
    least = 1 if reads or samples.targets else 2  # a single piece leaves nothing to predict

    def fits(i: int) -> bool:
        lengths = [len(text_ids(samples.sources[i], base.src_tokenizer, config.normalisation))]
        if samples.targets:
            lengths.append(len(text_ids(samples.targets[i], base.tgt_tokenizer)))
        return lengths[0] >= least and (max(lengths) if reads else sum(lengths)) <= config.max_len - around

    return samples.only([i for i in range(len(samples)) if fits(i)])


def _ranked(one: Field, search: AnswerSearch, best: Mapping[str, Any]) -> Field:
    """A field with its choices by their losses, that of the best combination first; what was not tried last."""
    values, losses = search.choices[one.name], search.losses(one.name)
    first = search.place(one.name, best[one.name])
    means = {i: round(found[0].mean, 4) for i, found in losses.items()}
    order = sorted(range(len(values)), key=lambda i: (i != first, means.get(i, math.inf)))
    tried = [i for i in order if i in losses]
    outputs = {i: _output(search, {**best, one.name: values[i]}) for i in tried}
    choices = tuple(Choice(values[i], losses[i][0].mean if i in losses else None, outputs.get(i)) for i in order)
    if search.mean(best) >= search.guessing:  # a note says that of all fields at once
        return replace(one, choices=choices)
    named, pairs = {i: as_told(one.name, values[i]) for i in tried}, bool(search.samples.targets)
    plain = [(named[i], losses[i][0]) for i in tried]
    said = verdict(plain, guessing=search.guessing, written=search.writes_itself, pairs=pairs)
    alike = [i for i in tried if same(losses[first][0], losses[i][0])]
    worse = [i for i in tried if _clear(losses[first], losses[i])]
    known = pairs and len(search.samples) >= FEWEST and search.mean(best) <= KNOWN * search.guessing
    idle = [i for i in alike if one.name in IDLE and values[i] in one.usual]
    apart = say("Your pairs do not tell these apart: {values}.", values=", ".join(named[i] for i in alike))
    settled = known and len(alike) + len(worse) == len(tried) and (len(alike) == 1 or bool(idle))
    if settled and not (one.is_assumed and search.place(one.name, one.value) == first):
        said = say("Your pairs decide: {verdict}", verdict=said)
        if idle:
            taken = say("{value} is taken: it is usual, and nothing depends on the choice.", value=named[idle[0]])
            said = joined(" ", [apart, taken])
        return replace(one, how="decided", value=values[[first, *idle][-1]], choices=choices, evidence=said)
    said = joined(" ", [one.evidence, said, *([apart] if 1 < len(alike) < len(tried) else [])])
    usual = () if any(values[i] in one.usual for i in worse) else one.usual
    return replace(one, choices=choices, usual=usual, evidence=said)


def _clear(best: Sequence[Loss], other: Sequence[Loss]) -> bool:
    """Whether one choice is surely better than another, each at the temperature that suits it."""
    one, second = (min(losses, key=lambda loss: loss.mean) for losses in (best, other))
    return second.mean - one.mean > GAIN and surely_better(one, second)


def _output(search: AnswerSearch, answers: Answers) -> str | None:
    """What a small model writes for the first text, which shows nonsense at first sight."""
    model, parts = search.base.model, search.base.model.anatomy
    if not (parts.reads and parts.writes) or model.config.count_parameters() >= SMALL:
        return None
    try:
        tried = search.model(answers)
        return None if tried is None else first_output(tried, search.samples)
    except (ConfigError, QueryError):
        return None


def _work(search: AnswerSearch, least: float) -> Iterator[Sentence]:
    """How much was tried, and what it is worth."""
    n = len(search.samples)
    texts, whole = say_n("{n} text", "{n} texts", n), sum(1 for n_texts, _ in search.found if n_texts == n)
    few = len(search.found) - whole
    yield say("The answers were ranked by trying {whole} on {texts}, and {few} on the first {n_few} of these "
              "texts.", whole=say_n("{n} combination", "{n} combinations", whole), texts=texts,
              few=say_n("{n} more", "{n} more", few), n_few=min(FEW, n))  # fmt: skip
    if search.writes_itself:
        yield say(
            "Without targets, only the model's own certainty can be compared, but a wrong model can be "
            "certain, too. Provide sentence pairs."
        )
    if least >= search.guessing:
        yield say("Even the best answers are no better than guessing: their loss on {texts} is {loss:.3g}; the loss "
                  "of guessing is {guessing:.3g}.", texts=texts, loss=least, guessing=search.guessing)  # fmt: skip


def _explained(search: AnswerSearch, best: Answers) -> Iterator[Sentence]:
    """The mistake in code with which the best answers explain the pairs, if there is one, and time to find it."""
    model, end = search.model(best), time.perf_counter() + SECONDS

    def pause() -> None:
        if time.perf_counter() > end:
            raise TimeoutError

    if model is None or not model.model.anatomy.writes:
        return
    try:
        found = WiringSearch(model, pairs_of(model, search.samples), pause=pause).run()
    except TimeoutError:
        return
    if found.verdict == "another" and found.standing is not None and found.best is not None:
        yield say(
            "With the best of these answers, the mistake “{title}” explains your pairs: the loss is {after:.3g} with "
            "it, and {before:.3g} without it.",
            title=titles(found.best.names), after=found.best.plain.mean, before=found.standing.plain.mean,
        )  # fmt: skip


def _noted(report: ImportReport, *notes: Sentence) -> ImportReport:
    return replace(report, notes=(*report.notes, *notes))
