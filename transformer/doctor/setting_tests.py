"""What a file does not store: heads, scale, place of the norms, activation, where positions begin.

Each is wrong in silence: the same parameters under another setting load without an error and compute something. So
neighbouring values are tried on the patient's sentences, with the same parameters and all else as it is. In a model
that is as it was trained no neighbour does better; one that is told wrongly does better where it is told right.

Source: `transformer.trying.variants` makes the neighbours, `losses` scores them, `verdicts` has the paired tests.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from transformer.doctor.findings import Measured, PageName, Shown, not_applicable, well
from transformer.doctor.neighbour_models import Neighbour, as_it_is, loss_of_neighbour, shifts, with_setting
from transformer.doctor.patient import Patient, Test
from transformer.trying.losses import Loss
from transformer.trying.verdicts import surely_better
from words import Sentence, say, say_n

GAIN = 0.05
"""Nats a piece by which a neighbour has to be better. The shipped and foreign healthy models: at most 0.016 on twelve
of a hundred texts. Wrong numbers of heads: 0.06 to 4."""
EASY = 1.0
"""Nats a piece up to which a model plainly works. Above, it is wrong in some way, and any change may be better by
chance: there a neighbour counts only if it explains half of the rest."""
EXPLAINS = 0.3
"""Share of the loss of guessing that may be left under a setting that is said to be that of the training."""
CLEAR = 1.25
"""How many times the gain of another setting has to be for that one to be blamed instead."""
BELOW = ("finite", "causality", "own_token", "cache", "positions", "source", "leak")
"""Tests of what stands below the settings: a model that does not pass them is wrong whatever its settings are."""
PLAIN = 0.1
"""Nats a piece that are worth a look where the texts are too few to rule out chance, if each of them gains."""
FEWEST = 3  # texts; the paired test shows nothing on fewer


@dataclass(frozen=True)
class Setting:
    """One setting."""

    name: str  # of the test
    title: Sentence  # what is tested
    neighbours: Callable[[Patient], Iterator[Neighbour]]  # values that are tried
    causes: Sentence  # how it comes to be wrong, and what to do
    page: PageName = "inside"  # which shows it

    def measure(self, patient: Patient) -> Measured:
        """Try the neighbours."""
        below = [name for name in BELOW if patient.verdicts.get(name) == "broken"]
        if below:
            return not_applicable(
                say("Settings can be compared once {tests} is mended: until then any change may do better by chance.",
                    tests=", ".join(below))
            )  # fmt: skip
        before = as_it_is(patient)
        if len(before.totals) < FEWEST:
            return not_applicable(
                say_n("{n} text that fits into the model is too few to compare settings on; give pairs.",
                      "{n} texts that fit into the model are too few to compare settings on; give pairs.",
                      len(before.totals))
            )  # fmt: skip
        tried = [(one, loss) for one in self.neighbours(patient) if (loss := loss_of_neighbour(patient, one))]
        if not tried:
            return not_applicable(say("No neighbouring value fits the parameters of this model."))
        best, loss = min(tried, key=lambda pair: pair[1].mean)
        return self._verdict(patient, before, best, loss, len(tried))

    def _verdict(self, patient: Patient, before: Loss, best: Neighbour, after: Loss, tried: int) -> Measured:
        gain = before.mean - after.mean
        needed = GAIN + max(0.0, before.mean - EASY) / 2
        shown = Shown(page=self.page)
        why = say(
            "In healthy models no neighbour is better by more than 0.016 nats a piece; wrong settings cost 0.06 to "
            "10. The better one has to be so beyond chance, or on each text and by more than 0.1."
        )
        beyond_chance = surely_better(after, before)
        seen = beyond_chance or (gain > PLAIN and _better_on_each(after, before))
        if gain <= needed or not seen or self._another_explains_more(patient, gain):
            said = say_n(
                "{n} neighbour was tried: with {best} the loss is {after:.3g} nats a piece; as the model is, "
                "{before:.3g}.",
                "{n} neighbours were tried: the best, {best}, has a loss of {after:.3g} nats a piece; the model as "
                "it is, {before:.3g}.",
                tried,
                best=best.name,
                after=after.mean,
                before=before.mean,
            )
            return well(said, gain, needed, why, shown=shown)
        parts = patient.anatomy
        judged = bool(patient.samples.targets) or not (parts.reads and parts.writes)  # else it judges its own output
        chance = math.log(len(patient.model.output_weight))
        explains = after.mean <= EXPLAINS * chance  # else something else is wrong, and this one helps against it
        sure = judged and beyond_chance and explains
        return Measured(
            verdict="broken" if sure else "look",
            number=gain,
            threshold=needed,
            why=why,
            said=say(
                "With {best} the loss is {after:.3g} nats a piece; as the model is, {before:.3g}.",
                best=best.name,
                before=before.mean,
                after=after.mean,
            ),
            headline=_trained_with(best) if sure else "",
            meaning=say("The parameters were trained with another setting than they are computed with.")
            if sure
            else say("The model does better with another setting, but not well: something else is wrong, too.")
            if judged and beyond_chance
            else say(
                "The model is surer of what it writes with another setting than with its own; that may be a wrong "
                "certainty. Give pairs, or more of them: they decide."
            ),
            causes=self.causes,
            places=(best.name,),
            shown=shown,
        )

    def _another_explains_more(self, patient: Patient, gain: float) -> bool:
        """Whether another setting is far better still: then that one is wrong, and this one gains by chance."""
        before = as_it_is(patient).mean
        for setting in SETTINGS:
            if setting.name != self.name:
                for one in setting.neighbours(patient):
                    loss = loss_of_neighbour(patient, one)
                    if loss is not None and before - loss.mean > CLEAR * gain:
                        return True
        return False


def _trained_with(best: Neighbour) -> Sentence:
    """What the training had, and the model has not."""
    if best.changes.get("score_scale") == 1.0:
        return say("It was trained without dividing the attention scores by √d_head, and they are divided here.")
    if not best.by:
        return say("It was trained with {best}, and is computed otherwise here.", best=best.name)
    where = ", ".join(best.stacks)
    if best.by > 0:
        return say_n(
            "It was trained with positions that begin {n} row later than here ({where}).",
            "It was trained with positions that begin {n} rows later than here ({where}).",
            best.by,
            where=where,
        )
    return say_n(
        "It was trained with positions that begin {n} row earlier than here ({where}).",
        "It was trained with positions that begin {n} rows earlier than here ({where}).",
        -best.by,
        where=where,
    )


def _better_on_each(after: Loss, before: Loss) -> bool:
    shares = zip(after.totals, after.pieces, before.totals, before.pieces, strict=True)
    return all(a / max(1, n) < b / max(1, m) for a, n, b, m in shares)


def _heads(patient: Patient) -> Iterator[Neighbour]:
    """Down to a quarter and up to four times the number, the projections as wide as they are."""
    config = patient.config
    width, shared = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    for n in (config.n_heads // 4, config.n_heads // 2, 2 * config.n_heads, 4 * config.n_heads):
        if n and width % n == 0 and shared % (width // n) == 0:
            yield with_setting(n_heads=n, d_head=width // n, n_kv_heads=shared // (width // n))


def _scale(patient: Patient) -> Iterator[Neighbour]:
    yield with_setting(scale_embedding=not patient.config.scale_embedding)


def _score_scale(patient: Patient) -> Iterator[Neighbour]:
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


def _norm(patient: Patient) -> Iterator[Neighbour]:
    """A norm after the sum or before the sub-layer: the parameters are the same."""
    if patient.config.norm != "both" and patient.config.norm_kind != "none":
        yield with_setting(norm="post" if patient.config.norm == "pre" else "pre")


def _activation(patient: Patient) -> Iterator[Neighbour]:
    for name in ("relu", "gelu", "silu"):
        if name != patient.config.activation.removesuffix("_tanh"):
            yield with_setting(activation=name)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "score_scale",
        say("The attention scores are scaled as they were trained"),
        _score_scale,
        say(
            "The wrong line is the one that makes the scores: `q @ k.transpose(-2, -1) / math.sqrt(d_head)` divides "
            "them, some code forgets it or divides by √d_model, and no file says which. As the model was trained so "
            "it has to be opened: set score_scale to the value that does best here."
        ),
    ),
    Setting(
        "n_heads",
        say("The number of heads is right"),
        _heads,
        say(
            "No file of weights holds the number of heads, and every divisor of d_model loads. Look it up in the "
            "code or the arguments of the training, or set it to the value that does best here."
        ),
    ),
    Setting(
        "scale_embedding",
        say("The scale of the embeddings is right"),
        _scale,
        say(
            "Token embeddings are multiplied by the square root of d_model, or are not; fairseq, Marian and the "
            "Annotated Transformer do, GPT-2, BERT and many tutorials do not. Set scale_embedding the other way."
        ),
    ),
    Setting(
        "norm",
        say("The norms stand where they were trained"),
        _norm,
        say(
            "Norms before the sub-layers and after the sums have the same parameters (norm_first of "
            "`nn.TransformerEncoderLayer`); a final norm suggests that they stand before. Set norm the other way."
        ),
    ),
    Setting(
        "activation",
        say("The activation is the one of the training"),
        _activation,
        say(
            "The non-linearity has no parameters, so no file holds it; `nn.TransformerEncoderLayer` takes ReLU "
            "unless it is told otherwise. Set activation to the value that does best here."
        ),
    ),
    Setting(
        "position_shift",
        say("Positions begin where they were trained"),
        shifts,
        say(
            "The wrong line is the one that adds the positions: `x + pe[:, : x.size(1)]` begins with the table's "
            "first row, and `x + pe[:, 1 : x.size(1) + 1]` with its second. Some code does so on purpose: fairseq, "
            "BART and OPT leave the first 2 rows to padding. As the model was trained so it has to be opened: cut "
            "those rows off the table in the file, or put them before it; or train again."
        ),
        "positions",
    ),
)

TESTS: tuple[Test, ...] = tuple(Test(one.name, "wiring", one.title, one.measure) for one in SETTINGS)
