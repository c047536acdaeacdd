"""Doctor tests of feed-forward networks and embeddings: dead neurons, rows in few directions, equal or zero rows.

A neuron is dead if it is silent in every text, random ones included, and its input is `FAR` standard deviations below
its firing point, so no text will fire it. Rare neurons are not dead: in a trained model most are silent at most tokens.

Rows are compared by direction, as a norm removes their length. The number of directions of a table is the entropy of
its singular values: one long direction does not hide the others.

Sources: Voita et al. (2023), "Neurons in Large Language Models: Dead, N-gram, Positional", section 3; Roy and Vetterli
(2007), "The Effective Rank"; Ethayarajh (2019), "How Contextual are Contextualized Word Representations?", for the mean
cosine.

Shapes: B texts, T tokens, V vocabulary, D d_model, F d_ff.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    DoctorTest,
    ExaminationContext,
    ParameterContext,
    own_texts,
    random_texts,
    read_again,
)
from glassformer.extensions.doctor.library.findings import (
    MOST_PLACES,
    NOT_FINITE,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    at_least,
    at_most,
)
from glassformer.extensions.doctor.library.parameter_tests import TABLES, each, found_in, of_weights
from transformer.analysis.neurons import NEAR_ZERO, site
from transformer.analysis.parameters import spectrum
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import StackName
from transformer.model.module import widened
from transformer.model.taps import Observer
from transformer.text.tokenizer import AnyTokenizer

FAR = 8.0
MANY_DEAD = 0.02
"""Share of a layer's neurons; single ones die in many trainings, and nobody notices."""
FEW_DEAD = 3
"""Fewer are single ones in a narrow layer, too."""
STILL = 1e-6
"""Share of the largest value of its layer below which a number does not move."""


class ActivationSpread:
    """How one value of every neuron of a layer is spread over the tokens so far, each array [F] in float64."""

    def __init__(self, width: int) -> None:
        self.n, (self.total, self.squares) = 0, torch.zeros(2, width, dtype=torch.float64)  # tokens, sums over them
        self.most = torch.full((width,), -torch.inf, dtype=torch.float64)
        self.least = -self.most

    def add(self, values: Tensor) -> None:
        """More tokens, [B, T, F]."""
        rows = values.flatten(0, 1).cpu().double()
        self.n += len(rows)
        self.total += rows.sum(dim=0)
        self.squares += rows.square().sum(dim=0)
        self.least = torch.minimum(self.least, rows.amin(dim=0))
        self.most = torch.maximum(self.most, rows.amax(dim=0))

    @property
    def mean(self) -> Tensor:
        """Of each neuron."""
        return self.total / self.n

    @property
    def deviation(self) -> Tensor:
        """Of each neuron."""
        return (self.squares / self.n - self.mean.square()).clamp_min(0).sqrt()

    @property
    def largest(self) -> float:
        """The value farthest from 0."""
        return float(torch.maximum(self.most, -self.least).max())


@DoctorTest(
    "feed_forward",
    say("Neurons fire"),
    threshold=MANY_DEAD,
    causes=say(
        "The learning rate was so high that biases were pushed far below 0 (with ReLU, such neurons no longer get "
        "a gradient), an import filled a bias or a row of W_up with wrong values, or the activation function "
        "differs from training. Look at the layer's pre-activations. If you train again, use a lower learning rate "
        "or a longer warm-up."
    ),
)
def dead_neurons(patient: ExaminationContext) -> DoctorTestResult:
    """Neurons that say nothing, whatever is read."""
    layers = [(stack.name, layer) for stack in patient.anatomy.stacks for layer in range(stack.n_layers)]
    seen = {
        site(stack, layer, name): ActivationSpread(patient.config.of(stack).d_ff)
        for stack, layer in layers
        for name in ("pre_activation", "activation")
    }
    watch = Observer(seen, lambda site, value: seen[site].add(value))
    read_again(patient, [*own_texts(patient), *random_texts(patient)], watch)
    if not all(bool(one.squares.isfinite().all()) for one in seen.values()):
        raise NotTestable(NOT_FINITE)
    found = {(stack, layer): _dead(patient, stack, layer, seen) for stack, layer in layers}
    (stack, layer), neurons = max(found.items(), key=lambda item: int(item[1].sum()))
    n_dead, share = int(sum(one.sum() for one in found.values())), float(neurons.double().mean())
    why = say(
        "A neuron counts as dead if it does not fire at any of {n:,} tokens, most of them random, and its mean "
        "input is at least {far:g} standard deviations below the point where it would fire. In the shipped "
        "checkpoints, no neuron is more than {most:g} standard deviations below that point. A few neurons die in "
        "many training runs, so the threshold is {share:.0%} of a layer.",
        n=next(iter(seen.values())).n, far=FAR, share=MANY_DEAD, most=at_most("dead_neurons.beside"),
    )  # fmt: skip
    if share <= MANY_DEAD or int(neurons.sum()) < FEW_DEAD:
        said = say_n("{n:,} neuron is dead.", "{n:,} neurons are dead.", n_dead)
        return DoctorTestResult(verdict="well", number=share, beside=_farthest(seen), said=said, why=why)
    whole = bool(neurons.all())
    return DoctorTestResult(
        verdict="broken" if whole else "look",
        number=share,
        said=say_n(
            "{n:,} neuron is dead. The layer with the most dead neurons is {layer}, where {share:.0%} are dead.",
            "{n:,} neurons are dead. The layer with the most dead neurons is {layer}, where {share:.0%} are dead.",
            n_dead,
            layer=f"{stack}.{layer + 1}",
            share=share,
        ),
        why=why,
        meaning=_WHOLE if whole else _SOME,
        places=tuple(f"{stack}.{layer + 1}.{int(i) + 1}" for i in neurons.nonzero()[:, 0]),
        shown=PageTarget(page="inside", panel="ffn", kind=stack, layer=layer, source=patient.first_source),
    )


def _dead(patient: ExaminationContext, stack: StackName, layer: int, seen: dict[str, ActivationSpread]) -> Tensor:
    """Which neurons of a layer are dead, bool [F]."""
    read, made = (seen[site(stack, layer, name)] for name in ("pre_activation", "activation"))
    fixed = read.most - read.least <= STILL * read.largest
    far = read.mean + FAR * read.deviation < 0
    moved = made.most - made.least
    smooth = patient.config.activation != "relu"
    silent = (moved <= STILL * made.largest) | ((moved < NEAR_ZERO) & smooth)
    blind = silent & (fixed | (far if patient.config.activation != "none" else torch.zeros_like(far)))
    cut = moved <= STILL * made.largest if patient.config.gated else torch.zeros_like(blind)
    layers: Any = patient.model.stack(stack).layers
    written = widened(layers[layer].ffn.down_proj.weight.detach()).norm(dim=0).cpu().double()  # [F]
    return blind | cut & ~far | (written <= STILL * written.median())


def _farthest(seen: dict[str, ActivationSpread]) -> float:
    """How many of its standard deviations a neuron's mean input is below 0, that of the farthest neuron."""
    read = (one for name, one in seen.items() if name.endswith("pre_activation"))
    return max(float((-one.mean / one.deviation)[one.deviation > 0].max()) for one in read)


_SOME: Sentence = say(
    "Each of these neurons adds the same vector at every token, so the feed-forward network is effectively "
    "narrower than the config says."
)
_WHOLE: Sentence = say(
    "In one feed-forward network, each neuron adds the same vector at every token, so the network only adds a "
    "constant vector."
)


NARROW = 0.9
"""Mean cosine of two rows above which a table is one direction and little else."""
FEW_DIRECTIONS = 0.1
"""Share of the directions that a table could have."""
MOST_ROWS = 4096
"""Of larger tables as many rows are drawn to count directions: the share changes in the third digit."""
MOST_DIRECTIONS = 1024
"""Wider tables are projected on as many random directions."""
MOST_VALUES = 2**26
"""Of still larger ones as many values are looked at, 256 MB."""


@dataclass(frozen=True, eq=False)
class NeuronTable:
    """A table of embeddings."""

    name: str  # of the parameter
    rows: Tensor  # those that a tokenizer has ordinary pieces for [V, D], in 32 bits; at most `MOST_VALUES` values
    ids: Tensor  # of these rows [V]
    tokenizer: AnyTokenizer  # what they stand for


def tables(patient: ExaminationContext) -> list[NeuronTable]:
    """The tables of the model, each once, the source's before the target's before that of the output."""
    model, source, target = patient.model, patient.checkpoint.src_tokenizer, patient.checkpoint.tgt_tokenizer
    named = [("src_table", model.src_table, source)]
    if not patient.config.shared_vocab:
        named.append(("tgt_table", model.tgt_table, target))
    if patient.anatomy.gives_logits and not patient.config.tie_output:
        named.append(("output_table", model.output_table, target))
    return [_table(*one) for one in named]


def _table(name: str, rows: Tensor, tokenizer: AnyTokenizer) -> NeuronTable:
    size, most = min(len(rows), tokenizer.size), max(1, MOST_VALUES // rows.size(1))
    ids = torch.tensor([i for i in range(size) if not tokenizer.is_special(i)], dtype=torch.long)
    ids = ids[:: -(-len(ids) // most) or 1]
    return NeuronTable(name, widened(rows.detach()[ids]).cpu(), ids, tokenizer)


def mean_cosine(rows: Tensor) -> float:
    """The mean cosine of two different rows of a table [V, D], -1 to 1; rows of 0 are left out."""
    total, n = torch.zeros(rows.size(1), dtype=torch.float64), 0
    for part in rows.split(MOST_ROWS):
        lengths = part.norm(dim=1)
        unit = part[lengths > 0] / lengths[lengths > 0, None]
        total, n = total + unit.sum(dim=0, dtype=torch.float64), n + len(unit)
    return float((total.square().sum() - n) / (n * (n - 1))) if n > 1 else float("nan")


def directions(rows: Tensor) -> float:
    """How many directions a table [V, D] has around its mean, as a share of those that there could be, 0 to 1."""
    centred = (rows - rows.mean(dim=0)).double()
    if centred.size(1) > MOST_DIRECTIONS:
        drawn = torch.randn(centred.size(1), MOST_DIRECTIONS, generator=torch.Generator().manual_seed(0))
        centred = centred @ drawn.double()
    most, found = min(len(rows) - 1, centred.size(1)), spectrum(centred)
    return found.effective_rank / most if most > 0 and found is not None and found.largest > 0 else 0.0


@DoctorTest(
    "feed_forward",
    say("Embeddings point in many directions"),
    why=say(
        "In the shipped checkpoints, the mean cosine is at most {most:g}, and at least {least:.0%} of the directions "
        "are used. If the mean cosine is above {cosine:g}, or less than {share:.0%} of the directions are used, the "
        "rows can hardly be distinguished.",
        most=at_most("collapsed_embeddings"),
        least=at_least("collapsed_embeddings.beside"),
        cosine=NARROW,
        share=FEW_DIRECTIONS,
    ),
    meaning=say(
        "The model can hardly distinguish tokens: it gets nearly the same vector for every token it reads. If the "
        "output layer is tied to such a table, all tokens get nearly the same score."
    ),
    causes=say(
        "Training diverged or saw only one batch, weight decay shrank the embeddings while no loss kept them "
        "apart, the table was filled with a mean or with zeros, or a tensor with a different layout was reshaped "
        "instead of transposed."
    ),
    of_wiring=True,
)
def collapsed_embeddings(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the rows of a table point in many directions."""
    found = [(one.name, *_numbers(one.rows, patient.seed)) for one in tables(patient) if len(one.rows) > 1]
    found = [one for one in found if one[1] == one[1]]  # not NaN
    if not found:
        raise NotTestable(NOT_FINITE)
    narrow, cosine, _ = max(found, key=lambda one: one[1])
    flat, _, share = min(found, key=lambda one: one[2])
    bad = tuple(name for name, alike, wide in found if alike > NARROW or wide < FEW_DIRECTIONS)
    by_cosine = cosine > NARROW or not bad
    return DoctorTestResult(
        verdict="broken" if bad else "well",
        number=cosine if by_cosine else share,
        threshold=NARROW if by_cosine else FEW_DIRECTIONS,
        beside=share if by_cosine else cosine,
        said=say("The mean cosine between two rows of {table} is {cosine:.2f}.", table=narrow, cosine=cosine)
        if by_cosine
        else say("{table} uses {share:.1%} of its possible directions.", table=flat, share=share),
        places=bad,
        shown=PageTarget(page="inside", panel="pieces", tensor=bad[0]) if bad else None,
    )


def _numbers(rows: Tensor, seed: int) -> tuple[float, float]:
    if not bool(rows.isfinite().all()):
        return float("nan"), float("nan")
    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:MOST_ROWS]
    return mean_cosine(rows), directions(rows[drawn])


@DoctorTest(
    "feed_forward",
    say("Every token has its own row"),
    threshold=1.0,
    why=say("Each row is learned separately, and no two rows start with the same values."),
    causes=say(
        "Tokens were added to the vocabulary later and given the same row, rows started at 0 and were never "
        "trained, or the table was put together from parts and some of them were used twice. Tokens that no text "
        "uses do no harm; all other tokens need training."
    ),
)
def equal_embeddings(patient: ExaminationContext) -> DoctorTestResult:
    """Rows of ordinary pieces that are equal."""
    groups = [(one, group) for one in tables(patient) for group in _equal_rows(one.rows)]
    if not groups:
        return DoctorTestResult(verdict="well", number=0.0, said=say("No two tokens have the same row."))
    n = sum(len(group) for _, group in groups)
    return DoctorTestResult(
        verdict="look",
        number=float(n),
        said=say_n(
            "{n:,} token has the same embedding row as another token.",
            "{n:,} tokens have the same embedding row as another token.",
            n,
        ),
        places=tuple(one.tokenizer.piece(int(one.ids[i])) for one, alike in groups for i in alike),
        shown=PageTarget(page="inside", panel="pieces", tensor=groups[0][0].name),
    )


def _equal_rows(rows: Tensor) -> list[list[int]]:
    """Places of rows that are equal to the last bit, by groups."""
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows.numpy()):
        found.setdefault(row.tobytes(), []).append(i)
    return [group for group in found.values() if len(group) > 1]


@of_weights(
    say("Every token has an embedding"),
    threshold=0,
    why=say("The rows of an embedding table are initialised at random; only the padding row is set to 0 on purpose."),
    causes=say(
        "The vocabulary was enlarged after training, `padding_idx` was a different id from the config's pad_id, or "
        "no text uses these rows, which only bring the table to a round size."
    ),
)
def zero_rows(patient: ParameterContext) -> DoctorTestResult:
    """Rows of the embeddings that are all 0, but for padding."""
    bad: list[str] = []
    n, sizes = 0, dict[str, int]()  # how many rows of a table stand for tokens
    if patient.whole is not None:
        checkpoint = patient.whole.checkpoint
        sizes = dict.fromkeys(TABLES, checkpoint.tgt_tokenizer.size) | {"src_table": checkpoint.src_tokenizer.size}
    for name, one in each(patient):
        if name in TABLES and one.abs().max() > 0:
            empty = (one[: sizes.get(name)] == 0).all(dim=1).nonzero()[:, 0].tolist()
            rows = [i for i in empty if i not in (patient.padding or ())]
            if patient.padding is None and len(rows) == 1:  # which is what padding has
                continue
            n += len(rows)
            bad += [f"{name}[{i}]" for i in rows[:MOST_PLACES]]
    said = say_n(
        "{n} row is all 0: {first}.", "{n} rows are all 0; the first is {first}.", n, first=next(iter(bad), "")
    )
    well = say("No token except padding has an embedding that is all zeros.")
    return found_in(bad, n, said=said, well=well, fault="look")


TESTS = (dead_neurons, collapsed_embeddings, equal_embeddings)
