"""Search of combinations of answers: the one with which a model has the least loss on sample texts.

All fields together have too many combinations. Three steps find the best one:

1. The fields that act on everything (place of the norms, scale, heads, start and end ids) in every combination, on
   few texts: where two of them are wrong, getting one right shows nothing.
2. The best of these with every combination of the next fields, such as the activation; and so on, on few texts.
3. From the best of those, one field after another, each choice with the others as they are, on all texts, until no
   change is better.

The number of combinations and the model's size say how many fields one step has.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.wirings.readings import PairIds, Reading, batches, losses_of_batches, pairs_of
from transformer.analysis.losses import Answers, Loss, Samples, Variant, Variants, loss_of, text_ids
from transformer.analysis.significance import SAME
from transformer.errors import CheckpointError, ConfigError, QueryError
from transformer.i18n import Sentence, say
from transformer.model.taps import NO_TAP
from transformer.runs.query import Scorable

Build = Callable[[Answers], Scorable | None]
"""A model with these answers to all that is asked; None if there is none."""
Progress = Callable[[int, int], object]
"""Told how many combinations were tried, and how many there can be at most."""

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
    progress: Progress  # called after each try
    # The losses of each combination on the first so many texts, as `_losses` has them; None if no model has it.
    found: dict[tuple[int, tuple[Any, ...]], list[Loss] | None] = field(default_factory=dict)
    # The last model that was built, by the answers of `STORED`.
    built: dict[tuple[Any, ...], Variants | None] = field(default_factory=dict)
    problem: Sentence = say("some tensors are missing or left over.")  # of the last combination that no model has

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
        if key not in self.built:
            self.built.clear()
            try:
                made = self.build({**self.fixed, **stored})
            except (ConfigError, CheckpointError):
                made = None  # no model has these
            self.built[key] = None if made is None else Variants(made)
        variants = self.built[key]
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
