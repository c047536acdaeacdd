"""Doctor tests of settings that files do not store: heads, scales, norms, activation, start of positions.

A wrong setting is silent: the parameters load without an error and compute something. So neighbouring values are tried
on the sentences, with all else unchanged. No neighbour of a right setting does better; a right neighbour of a wrong
setting does.

A neighbour shares the model's parameters, class and positions, so faults there affect both.

Source: `transformer.analysis.losses` makes and scores the neighbours, `significance` beside it has the paired tests.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.extensions.doctor.library.context import BELOW, DoctorTest, ExaminationContext
from glassformer.extensions.doctor.library.findings import (
    NOT_FINITE,
    DoctorTestResult,
    NotTestable,
    PageName,
    PageTarget,
    at_most,
)
from transformer.analysis.losses import Loss, Samples, Variant, loss_of, text_ids
from transformer.analysis.significance import surely_better
from transformer.errors import ConfigError, DataError, QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import StackName
from transformer.model.positions import Moves
from transformer.runs.query import Scorable

GAIN = 0.05
"""Nats a token by which a neighbour has to be better; `calibrated.json` has by how much it is in the shipped models."""
EASY = 1.0
"""Nats a piece up to which a model plainly works. Above, it is wrong in some way, and any change may be better by
chance: there a neighbour counts only if it explains half of the rest."""
EXPLAINS = 0.3
"""Share of the loss of guessing that may be left under a setting that is said to be that of the training."""
CLEAR = 1.25
"""How many times the gain of another setting has to be for that one to be blamed instead."""
PLAIN = 0.1
"""Nats a piece that are worth a look where the texts are too few to rule out chance, if each of them gains."""
FEWEST = 3  # texts; the paired test shows nothing on fewer

WORK = 2e11  # multiply-adds of one loss: about five seconds on one core
WRITTEN = 4  # passes a token that is written costs more than one that is read, about
NO_LOSS = Loss((), ())


@dataclass(frozen=True)
class Neighbour:
    """One setting and another value."""

    name: str  # for people and programs, such as "n_heads = 8"
    changes: dict[str, Any] = field(default_factory=dict)  # fields of the config
    by: int = 0  # how many rows the positions of these stacks begin later
    stacks: tuple[StackName, ...] = ()


def with_setting(**changes: Any) -> Neighbour:
    """The neighbour with other values of the config; the first one is named."""
    name, value = next(iter(changes.items()))
    return Neighbour(f"{name} = {str(value).lower() if isinstance(value, bool) else value}", changes)


def _table(patient: ExaminationContext, stack: StackName) -> Tensor | None:
    """The table that is added to the embeddings [position, D]; None where there is none."""
    return getattr(patient.model.stack(stack).embedding.positions, "table", None)


class _Shifted(nn.Module):
    """A table of positions that begins some rows later; what is beyond one end is taken from the other."""

    def __init__(self, table: Tensor, by: int) -> None:
        super().__init__()
        self._rows, self._by = table.detach(), by

    def forward(self, length: int, *, offset: int = 0, moves: Moves | None = None) -> Tensor:
        """Vectors of the positions from offset on, moved if they are [length, D]."""
        places = torch.arange(offset, offset + length, device=self._rows.device)
        places = places if moves is None else moves(places)
        return self._rows[(places + self._by) % len(self._rows)]


def fitting(patient: ExaminationContext) -> Samples:
    """The patient's sentences that the model can read, as many as can be scored in a few seconds."""
    checkpoint, samples, config = patient.checkpoint, patient.scored, patient.config
    places, work = [], 0.0
    alone = not patient.anatomy.reads
    for i in range(len(samples)):
        try:
            source = len(text_ids(samples.sources[i], checkpoint.src_tokenizer, config.normalisation))
            target = len(text_ids(samples.targets[i], checkpoint.tgt_tokenizer)) if samples.targets else 0
        except DataError:
            continue
        n = source + len(config.source_start) + len(config.source_end) + (target if alone else 0)
        cost = n + target + (0 if samples.targets or alone else WRITTEN * n)
        work += cost * config.count_parameters()
        if source and max(n, target + len(config.forced_ids) + 1) < config.max_len and work <= WORK:
            places.append(i)
    return samples.only(places)


def as_it_is(patient: ExaminationContext) -> Loss:
    """The loss of the patient's own model; a `QueryError` where it gives no logits, or what is not finite."""
    found = patient.losses.get("")
    if found is None:
        patient.losses[""] = found = _scored(patient, patient.checkpoint)
    return found


def _scored(patient: ExaminationContext, model: Scorable) -> Loss:
    samples = fitting(patient)
    found = loss_of(model, samples) if len(samples) else NO_LOSS
    if not all(abs(one) < float("inf") for one in found.totals):
        raise QueryError(NOT_FINITE)
    return found


def loss_of_neighbour(patient: ExaminationContext, neighbour: Neighbour) -> Loss | None:
    """The loss of a neighbour on the same texts; None if no model has this setting."""
    if neighbour.name not in patient.losses:
        patient.pause()
        try:
            model = neighbour_of(patient, neighbour)
            patient.losses[neighbour.name] = None if model is None else _scored(patient, model)
        except (ConfigError, QueryError):  # it contradicts the rest, or what it computes is not finite
            patient.losses[neighbour.name] = None
    return patient.losses[neighbour.name]


def neighbour_of(patient: ExaminationContext, neighbour: Neighbour) -> Variant | None:
    """The model with another setting, until the next call; None if it would need other parameters.

    A `ConfigError` where the setting contradicts others.
    """
    found = patient.variants.get(neighbour.changes)
    if found is None:
        return None
    found.model.__class__ = type(patient.model)
    for one in patient.anatomy.stacks:
        positions: nn.Module | None = patient.model.stack(one.name).embedding.positions
        table = _table(patient, one.name)
        if one.name in neighbour.stacks and table is not None:
            positions = _Shifted(table, neighbour.by)
        setattr(found.model.stack(one.name).embedding, "positions", positions)  # noqa: B010  of another class
    return found


Values = Callable[[ExaminationContext], Iterator[Neighbour]]  # those of one setting that are tried
_SETTINGS: list[Values] = []

of_setting = partial(
    DoctorTest,
    "wiring",
    why=say(
        "In the shipped checkpoints, changing a setting lowers the loss by at most {most:g} nats per token; most "
        "changes raise it. A different value counts as better only if the loss falls by more than chance "
        "explains, or if it falls on every text and by more than {plain:g} on average.",
        most=max(0.0, at_most("score_scale", "n_heads", "scale_embedding", "norm", "activation", "position_shift")),
        plain=PLAIN,
    ),
)


def tried(page: PageName) -> Callable[[Values], Callable[[ExaminationContext], DoctorTestResult]]:
    """Decorates the values of a setting, which a page shows: what comes of trying them."""

    def look_of(values: Values) -> Callable[[ExaminationContext], DoctorTestResult]:
        _SETTINGS.append(values)

        @wraps(values)
        def look(patient: ExaminationContext) -> DoctorTestResult:
            return _measured(patient, values, PageTarget(page=page))

        return look

    return look_of


def _measured(patient: ExaminationContext, values: Values, shown: PageTarget) -> DoctorTestResult:
    if patient.broken_below:
        raise NotTestable(
            "Settings can be compared only after these tests pass: {tests}. Until then, any change may lower the "
            "loss by chance.",
            tests=", ".join(patient.broken_below),
        )
    before = as_it_is(patient)
    if len(before.totals) < FEWEST:
        raise NotTestable(
            say_n("Only {n} text is short enough for the model, too few to compare settings. Provide more pairs.",
                  "Only {n} texts are short enough for the model, too few to compare settings. Provide more pairs.",
                  len(before.totals))
        )  # fmt: skip
    losses = [(one, loss) for one in values(patient) if (loss := loss_of_neighbour(patient, one))]
    if not losses:
        raise NotTestable("The shapes of this model's parameters allow no other value of this setting.")
    best, after = min(losses, key=lambda pair: pair[1].mean)
    gain = before.mean - after.mean
    needed = GAIN + max(0.0, before.mean - EASY) / 2
    beyond_chance = surely_better(after, before)
    seen = beyond_chance or (gain > PLAIN and _better_on_each(after, before))
    if gain <= needed or not seen or _another_explains_more(patient, gain, values):
        said = say_n("{n} other value was tried on {texts}: with {best}, the loss is {after:.3g} nats per token; "
                     "with the model's own value, it is {before:.3g}.",
                     "{n} other values were tried on {texts}: with the best, {best}, the loss is {after:.3g} nats "
                     "per token; with the model's own value, it is {before:.3g}.", len(losses), best=best.name,
                     texts=_texts(before), after=after.mean, before=before.mean)  # fmt: skip
        return DoctorTestResult(verdict="well", number=gain, threshold=needed, said=said, shown=shown)
    parts = patient.anatomy
    judged = bool(patient.samples.targets) or not (parts.reads and parts.writes)  # else it judges its own output
    explains = after.mean <= EXPLAINS * math.log(len(patient.model.output_weight))  # else something else is wrong
    sure = judged and beyond_chance and explains
    said = say(
        "With {best}, the loss on {texts} is {after:.3g} nats per token; with the model's own value, it is "
        "{before:.3g}.",
        best=best.name,
        texts=_texts(before),
        before=before.mean,
        after=after.mean,
    )
    if judged and not explains:
        raise NotTestable(joined(" ", [said, _POOR]))
    return DoctorTestResult(
        verdict="broken" if sure else "look",
        number=gain,
        threshold=needed,
        said=said,
        headline=_trained_with(best) if sure else "",
        meaning=""
        if sure
        else say(
            "With a different setting, the model is more certain of what it writes, but it may be certain and "
            "still wrong. Only sentence pairs can settle this: provide some, or add more."
        ),
        places=(best.name,),
        shown=shown,
    )


_POOR = say("Even so, the model does not know the texts, so this setting alone does not explain it.")


def _texts(loss: Loss) -> Sentence:
    """How many texts a loss is of: more than other tests take (`SCORED`)."""
    return say_n("{n} text", "{n} texts", len(loss.totals))


def _another_explains_more(patient: ExaminationContext, gain: float, values: Values) -> bool:
    """Whether another setting is far better still: then that one is wrong, and this one gains by chance."""
    before = as_it_is(patient).mean
    others = (one for other in _SETTINGS if other is not values for one in other(patient))
    losses = (loss_of_neighbour(patient, one) for one in others)
    return any(loss is not None and before - loss.mean > CLEAR * gain for loss in losses)


def _trained_with(best: Neighbour) -> Sentence:
    """What the training had, and the model has not."""
    if best.changes.get("score_scale") == 1.0:
        return say(
            "The model was trained without dividing the attention scores by √d_head, but its present settings "
            "divide them."
        )
    if not best.by:
        return say("The model was trained with {best}, but its settings now contain a different value.", best=best.name)
    where = ", ".join(best.stacks)
    if best.by > 0:
        return say_n(
            "In training, the model's positions began {n} row later in their table than they do now ({where}).",
            "In training, the model's positions began {n} rows later in their table than they do now ({where}).",
            best.by,
            where=where,
        )
    return say_n(
        "In training, the model's positions began {n} row earlier in their table than they do now ({where}).",
        "In training, the model's positions began {n} rows earlier in their table than they do now ({where}).",
        -best.by,
        where=where,
    )


def _better_on_each(after: Loss, before: Loss) -> bool:
    shares = zip(after.totals, after.pieces, before.totals, before.pieces, strict=True)
    return all(a / max(1, n) < b / max(1, m) for a, n, b, m in shares)


@of_setting(
    say("Attention scores are scaled as in training"),
    causes=say(
        "The cause is the line that computes the scores. `q @ k.transpose(-2, -1) / math.sqrt(d_head)` divides "
        "them by √d_head; some code does not divide them, or divides by √d_model, and weights files do not store "
        "which. A model has to be opened with the settings that it was trained with: set score_scale to the value "
        "with the lowest loss."
    ),
    cause=BELOW + 2,
    finds=("scores-not-scaled",),
    sees=("too-few-heads", "too-many-heads", "scores-scaled-by-width", "keys-drowned-in-noise"),
)
@tried("inside")
def score_scale(patient: ExaminationContext) -> Iterator[Neighbour]:
    """What q . k is multiplied by in code that does not divide it by the root of d_head."""
    config = patient.config
    usual = config.d_head**-0.5
    others = {
        "q·k": 1.0,
        "q·k ÷ √d_head": usual,
        "q·k ÷ √d_model": config.d_model**-0.5,
        "q·k ÷ d_head": 1 / config.d_head,
    }
    for name, scale in others.items():
        if not math.isclose(scale, config.score_scale or usual):
            yield Neighbour(f"score_scale = {scale:.4g} ({name})", {"score_scale": scale})


@of_setting(
    say("The number of heads is correct"),
    causes=say(
        "A weights file does not store the number of heads, and any divisor of d_model loads without an error. "
        "Look up the number in the training code or its arguments, or set it to the value with the lowest loss."
    ),
    cause=BELOW + 1,
    finds=("too-few-heads", "too-many-heads", "one-head"),
    sees=("scores-not-scaled", "keys-drowned-in-noise"),
)
@tried("inside")
def n_heads(patient: ExaminationContext) -> Iterator[Neighbour]:
    """Down to a quarter and up to four times the number, the projections as wide as they are."""
    config = patient.config
    width, shared = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    for n in (config.n_heads // 4, config.n_heads // 2, 2 * config.n_heads, 4 * config.n_heads):
        if n and width % n == 0 and shared % (width // n) == 0:
            yield with_setting(n_heads=n, d_head=width // n, n_kv_heads=shared // (width // n))


@of_setting(
    say("The embedding scale is correct"),
    causes=say(
        "Some models multiply token embeddings by the square root of d_model: fairseq, Marian and the Annotated "
        "Transformer do; GPT-2, BERT and many tutorials do not. Change scale_embedding to the opposite value."
    ),
    cause=BELOW + 5,
)
@tried("inside")
def scale_embedding(patient: ExaminationContext) -> Iterator[Neighbour]:
    """The other way."""
    yield with_setting(scale_embedding=not patient.config.scale_embedding)


@of_setting(
    say("The norms are placed as in training"),
    causes=say(
        "Pre-norm and post-norm models have the same parameters (see norm_first of `nn.TransformerEncoderLayer`). "
        "A final norm suggests pre-norm. Change norm to the other value."
    ),
    cause=BELOW + 3,
    finds=("norms-swapped",),
)
@tried("inside")
def norm(patient: ExaminationContext) -> Iterator[Neighbour]:
    """A norm after the sum or before the sub-layer: the parameters are the same."""
    if patient.config.norm != "both" and patient.config.norm_kind != "none":
        yield with_setting(norm="post" if patient.config.norm == "pre" else "pre")


@of_setting(
    say("The activation function matches training"),
    causes=say(
        "The activation function has no parameters, so weights files do not store it; `nn.TransformerEncoderLayer` "
        "uses ReLU by default. Set activation to the value with the lowest loss."
    ),
    cause=BELOW + 6,
)
@tried("inside")
def activation(patient: ExaminationContext) -> Iterator[Neighbour]:
    """The others, but for an approximation of the model's own."""
    for name in ("relu", "gelu", "silu"):
        if name != patient.config.activation.removesuffix("_tanh"):
            yield with_setting(activation=name)


@of_setting(
    say("Positions start as in training"),
    causes=say(
        "The cause is the line that adds the positions. `x + pe[:, : x.size(1)]` starts with the first row of the "
        "table, `x + pe[:, 1 : x.size(1) + 1]` with the second. Some code does this on purpose: fairseq, BART and "
        "OPT reserve the first 2 rows for padding. Positions have to start where they started in training: in the "
        "file, remove the extra rows at the start of the table or add the missing ones, or train again."
    ),
    cause=BELOW + 4,
    finds=("positions-shifted",),
    sees=("dead-neurons",),
)
@tried("positions")
def position_shift(patient: ExaminationContext) -> Iterator[Neighbour]:
    """Tables of positions that begin one or two rows earlier or later, of one stack or of both."""
    stacks = tuple(one.name for one in patient.anatomy.stacks if _table(patient, one.name) is not None)
    sets = [stacks, *((one,) for one in stacks)] if len(stacks) > 1 else [stacks] if stacks else []
    for several in sets:
        for by in (-2, -1, 1, 2):
            yield Neighbour(f"positions {by:+} ({', '.join(several)})", by=by, stacks=several)


TESTS = (score_scale, n_heads, scale_embedding, norm, activation, position_shift)
