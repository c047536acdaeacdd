"""Searches combinations of answers for the lowest loss.

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
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from glassformer.extensions.importers.library.parts import PARTS
from transformer.analysis.losses import Answers, Loss, Samples, Variants, loss_of, text_ids
from transformer.analysis.significance import SAME, same
from transformer.errors import CheckpointError, ConfigError, QueryError
from transformer.runs.model_protocols import Scorable

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
