"""Computed lesson answers on training: kept epoch, loss, teacher forcing, leak, rate, label smoothing, dropout.

Picks: what a lesson about training lets the model read: an output that it would not have written quite so.

A reference is the card's translation of an example if it has one, else one of the last results of a beam search: near
enough to be a right output, and different.
"""

import math
import random
import string
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    amount,
    clear,
    counted,
    numbered,
    only_rounding,
    refuse_if,
)
from glassformer.extensions.what_if.interventions import CausalMask
from transformer.checkpoint.curve import Curve, load_curve
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import Intervention
from transformer.runs.query import Beam
from transformer.runs.teacher_forcing import Score, judge, read_at_once

NOT_RECORDED: Final = say("What this step asks about was not recorded when this checkpoint was trained.")
OTHER_TRAINING: Final = say(
    "The training of this checkpoint went differently from what this step asks about; choose another checkpoint."
)
BEAMS: Final = 5
LENGTH_PENALTY: Final = 0.6


def reference(case: Case) -> dict[str, Any]:
    """An output to be read instead of the model's own, and the first piece that it would not have written there."""
    parts = anatomy(case.checkpoint.config)
    refuse_if(not (parts.reads and parts.writes), Refusal.NEEDS_BOTH)
    refuse_if(not case.trace.n_steps, Refusal.EMPTY_OUTPUT)
    for text in _texts(case):
        score = judge(case.checkpoint, case.trace.query, text)
        missed = first_miss(score)
        if missed is not None and missed < len(score) - 2 and clear(score.best_probabilities[: missed + 1]).all():
            return {
                "reference": text,
                "at": missed + 1,
                "step": min(missed + 1, case.trace.n_steps),
                "right": score.pieces[missed],
                "own": score.own_pieces[missed],
            }
    raise QuestionNotApplicable(
        "No suitable output was found: it must be close to the model's own output but differ from it early enough. "
        "Try a longer sentence."
    )


def _texts(case: Case) -> Iterator[str]:
    """Outputs that may be right, the likeliest to be so first."""
    card, source = case.checkpoint.card, case.trace.query.source
    if source in card.glosses and card.target_code.split("-")[0] == "en":
        yield card.glosses[source]
    beams = case.another(decoding=Beam(size=BEAMS, length_penalty=LENGTH_PENALTY))
    for result in reversed(beams.hypotheses):
        if result.text.strip() not in ("", case.trace.output_text.strip()):
            yield result.text.strip()


def first_miss(score: Score) -> int | None:
    """The first place, from 0, at which a model would have written another piece; None if there is none."""
    return next((place for place, hit in enumerate(score.hits) if not hit), None)


def last_loss(case: Case) -> dict[str, Any]:
    """The loss that the training ended with."""
    losses = curve_of(case).columns.get("loss")
    if losses is None:
        raise QuestionNotApplicable(NOT_RECORDED)
    return {"loss": losses[-1]}


def recipe(case: Case) -> dict[str, Any]:
    """What the card says of the training."""
    smoothing, epochs, config = smoothing_of(case), len(curve_of(case).epochs), case.checkpoint.config
    return {"smoothing": smoothing, "epochs": epochs, "dropout": config.dropout, "n": config.tgt_vocab_size}


def smoothing_of(case: Case) -> float:
    """How far the labels were smoothed."""
    said: Any = case.checkpoint.card.training.get("smoothing")
    if not isinstance(said, float) or not 0 < said < 1:
        raise QuestionNotApplicable(NOT_RECORDED)
    return said


def curve_of(case: Case) -> Curve:
    """How the training of the checkpoint went."""
    checkpoint = case.checkpoint
    try:
        curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    except CheckpointError as error:
        raise QuestionNotApplicable(
            "The learning curve of this checkpoint cannot be read: {problem}", problem=error.sentence
        ) from error
    if curve is None:
        raise QuestionNotApplicable("The folder of this checkpoint has no training.csv; choose another checkpoint.")
    return curve


CLEAR_NATS: Final = 0.1  # by how much the costliest piece has to stand out to be asked for
KNOWN_NATS: Final = 0.1  # a piece that costs less is known, up to what label smoothing leaves
_MEASURES: Final = ("dev_bleu", "dev_chrf", "dev_loss")  # in the order in which training goes by them
MOST_CHOICES: Final = 4
WORDS: Final = 10
LETTERS: Final = 7  # of each of those


def kept_epoch(case: Case) -> Answer:
    """Which epoch of the training the checkpoint holds."""
    curve = curve_of(case)
    kept: Any = case.checkpoint.card.training.get("epochs")
    epochs = curve.epochs
    refuse_if(kept not in epochs or len(epochs) < MOST_CHOICES, NOT_RECORDED)
    refuse_if(kept != curve.best_epoch() or "loss" not in curve.columns, OTHER_TRAINING)
    row, last = epochs.index(kept), epochs[-1]
    losses = curve.columns["loss"]
    others = [epochs[int(np.nanargmin(losses))], epochs[0], epochs[len(epochs) // 2], *epochs]
    chosen = list(dict.fromkeys([kept, last, *others]))[:MOST_CHOICES]
    measure = _measure(curve, row)
    options = tuple(
        Option(
            _epoch_word(epoch, last),
            say(
                "epoch {epoch}: {score}; training loss {loss:.3f}",
                epoch=epoch,
                score=_score(curve, measure, epochs.index(epoch)),
                loss=losses[epochs.index(epoch)],
            ),
        )
        for epoch in sorted(chosen)
    )
    values = {
        "kept": kept,
        "score": _score(curve, measure, row),
        "score_last": _score(curve, measure, -1),
        "loss": losses[row],
        "loss_last": losses[-1],
    }
    variant = "last" if kept == last else "earlier"
    return Answer(_epoch_word(kept, last), values, options=options, variant=variant)


def _epoch_word(epoch: int, last: int) -> str:
    return "last" if epoch == last else f"epoch-{epoch}"


def _measure(curve: Curve, kept: int) -> str:
    """The first of the measures that training goes by that tells the row that was kept from the last one."""
    for name in _MEASURES:
        column = curve.columns.get(name)
        last = kept == len(curve.epochs) - 1
        if column is not None and (column[kept] != column[-1] or (last and column[kept] > 0)):
            return name
    raise QuestionNotApplicable(OTHER_TRAINING)


def _score(curve: Curve, measure: str, row: int) -> Sentence:
    score = curve.columns[measure][row]
    if measure == "dev_bleu":
        return say("BLEU {score:.2f}", score=score)
    if measure == "dev_chrf":
        return say("chrF {score:.2f}", score=score)
    return say("dev loss {loss:.4f}", loss=score)


def guessing(case: Case) -> Answer:
    """What the loss of a model is that gives all pieces the same probability."""
    refuse_if(not anatomy(case.checkpoint.config).gives_logits, Refusal.WRITES_NOTHING)
    n = len(case.trace.vocabulary) or case.checkpoint.config.tgt_vocab_size
    refuse_if(n < 8, say("The vocabulary of this model is so small that the choices would hardly differ."))
    numbers = {"share": 1 - 1 / n, "nats": -math.log(1 / n), "bits": math.log2(n), "pieces": n}
    dev, variant = 0.0, "alone"
    with suppress(QuestionNotApplicable):
        curve = curve_of(case)
        losses, best = curve.columns.get("dev_loss"), curve.best_epoch()
        if losses is not None and best is not None and math.isfinite(losses[curve.epochs.index(best)]):
            dev, variant = losses[curve.epochs.index(best)], "trained"
    values = {"n": n, "nats": numbers["nats"], "bits": numbers["bits"], "dev": dev}
    return Answer("nats", values, options=numbered(numbers, ",.2f"), variant=variant)


def costliest_piece(case: Case) -> Answer:
    """Which piece of a right output has the largest loss, if one stands out."""
    score = judge(case.checkpoint, case.trace.query, case.picked["reference"])
    order = [int(place) for place in np.argsort(-score.losses, kind="stable")]
    top, least = order[0], order[-1]
    refuse_if(len(order) < 3, Refusal.TOO_SHORT)
    refuse_if(score.losses[top] - score.losses[order[1]] < CLEAR_NATS, Refusal.NO_WINNER)
    chosen = list(dict.fromkeys([top, least, order[1], order[len(order) // 2]]))[:MOST_CHOICES]
    options = tuple(Option(f"piece-{place + 1}", f"{place + 1} · {score.pieces[place]}") for place in sorted(chosen))
    values = {
        "place": top + 1,
        "piece": score.pieces[top],
        "p": _percent(float(score.probabilities[top])),
        "loss": float(score.losses[top]),
        "share": float(score.losses[top] / score.losses.sum()),
        "easy": score.pieces[least],
        "easy_p": _percent(float(score.probabilities[least])),
        "easy_loss": float(score.losses[least]),
    }
    return Answer(f"piece-{top + 1}", values, options=options)


def _percent(p: float) -> str:
    return f"{p:.1%}" if p >= 0.001 else say("less than 0.1%")


def what_is_read_next(case: Case) -> Answer:
    """What the decoder reads after a piece that it would not have written, while it is forced."""
    score, missed = _missed(case)
    reads = score.reads[missed + 1]
    right = "right" if reads == score.pieces[missed] else "own"
    options = (Option("right", score.pieces[missed]), Option("own", score.own_pieces[missed]))
    return Answer(right, {"reads": reads}, options=(*options, Option("nothing")))


def after_the_miss(case: Case) -> Answer:
    """How many of the pieces behind the first miss the model would write itself, having read the right ones."""
    score, missed = _missed(case)
    hits = score.hits[missed + 1 :]
    k, rest = int(hits.sum()), len(hits)
    sure = clear(score.best_probabilities[missed + 1 :])
    right = counted(hits, sure, lambda k: "all" if k == rest else ("some" if k else "none"))
    return Answer(right, {"k": k, "rest": rest, "output": case.trace.output_text})


def _missed(case: Case) -> tuple[Score, int]:
    score = judge(case.checkpoint, case.trace.query, case.picked["reference"])
    missed = first_miss(score)
    if missed is None or missed >= len(score) - 1:
        raise QuestionNotApplicable("The model would write this whole reference on its own; try another sentence.")
    return score, missed


def words_of_leak(case: Case) -> Answer:
    """How many of a few words a model that reverses letters writes right."""
    right = sum(case.another(source=word).output_text.strip() == word[::-1] for word in _words())
    options = numbered({str(number): number for number in (right, 0, WORDS // 2, WORDS - 1, WORDS)})
    word = _words()[0]
    output = case.another(source=word).output_text.strip()
    variant = "some" if right else ("none" if output else "empty")
    values = {"k": right, "n": WORDS, "word": word, "output": output}
    return Answer(str(right), values, options=options, variant=variant)


def _words() -> list[str]:
    """Words of random letters, the same ones always; a training that was made of others has not seen them."""
    rng = random.Random("new-words")
    return ["".join(rng.choices(string.ascii_lowercase, k=LETTERS)) for _ in range(WORDS)]


def why_the_leak(case: Case) -> Answer:
    """Why a model with a loss near 0 writes nothing right: by its loss on new words, the future open and closed."""
    seen, unseen = (_loss_on_words(case, *changes) for changes in ((CausalMask("off"),), ()))
    guess = math.log(len(case.trace.vocabulary))
    if seen > KNOWN_NATS or unseen < guess:
        raise QuestionNotApplicable("This model does not use later tokens, so it was not trained with a leak.")
    return Answer("looked", {"seen": amount(seen), "unseen": unseen, "guess": guess, "n": WORDS})


def _loss_on_words(case: Case, *changes: Intervention) -> float:
    """The mean loss of a piece of the right outputs of some words, given whole to the decoder as in training."""
    losses = []
    for word in _words():
        query = replace(case.trace.query, source=word, interventions=changes)
        ids = case.checkpoint.tgt_tokenizer.encode(word[::-1]).ids
        losses.append(read_at_once(case.checkpoint, query, (*ids, case.checkpoint.config.eos_id)).losses)
    return float(np.concatenate(losses).mean())


FEWEST_TOKENS: Final = 4  # below it ln n is close to 1, another choice
NEARLY_NOTHING: Final = 0.1  # of the highest rate of an epoch, what the last may have to count as having fallen


def rate_at_the_end(case: Case) -> Answer:
    """What the learning rate does once it has been warmed up."""
    rates = _column(case, "learning_rate")
    first, last = float(rates[0]), float(rates[-1])
    refuse_if(not 0 < last < NEARLY_NOTHING * float(rates.max()), OTHER_TRAINING)
    middle = float(rates[len(rates) // 2])
    values = {"first": f"{first:.6f}", "middle": f"{middle:.6f}", "last": f"{last:.6f}", "epochs": len(rates)}
    return Answer("falls", values)


def least_smoothed_loss(case: Case) -> Answer:
    """The least loss that a model can have under label smoothing: the entropy of what is wanted."""
    smoothing, n = smoothing_of(case), case.checkpoint.config.tgt_vocab_size
    right, other = 1 - smoothing + smoothing / n, smoothing / n
    floor = -right * math.log(right) - (n - 1) * other * math.log(other)
    numbers = {"zero": 0.0, "share": smoothing, "floor": floor, "guess": math.log(n)}
    values = {"floor": floor, "p": right, "loss": float(_column(case, "loss")[_kept(case)]), "n": n}
    return Answer("floor", values, options=numbered(numbers, ".2f"))


def dev_loss_on_noise(case: Case) -> Answer:
    """The least loss on the dev pairs where every target token was drawn at random: that of a guess."""
    n = case.checkpoint.config.tgt_vocab_size
    refuse_if(n < FEWEST_TOKENS, OTHER_TRAINING)
    numbers = {"memorised": 0.0, "share": 1 - 1 / n, "guess": math.log(n), "bits": math.log2(n)}
    return Answer("guess", {"n": n, "guess": math.log(n)}, options=numbered(numbers, ".2f"))


def training_above_dev(case: Case) -> Answer:
    """Why the loss in training is higher than that of sentences that were never learned from."""
    loss, dev = (float(_column(case, name)[_kept(case)]) for name in ("loss", "dev_loss"))
    smoothing, dropout = smoothing_of(case), case.checkpoint.config.dropout
    refuse_if(loss <= dev, OTHER_TRAINING)
    values = {"loss": loss, "dev": dev, "smoothing": smoothing, "dropout": dropout}
    return Answer("recipe", values, variant="both" if dropout else "smoothing")


def run_twice(case: Case) -> Answer:
    """Whether two runs of one sentence differ: where dropout acted, they would."""
    case.written(least=1)
    again = case.checkpoint.run(case.trace.query)
    same = again.tgt_ids == case.trace.tgt_ids
    apart = float(np.abs(again.log_probs - case.trace.log_probs).max()) if same else math.inf
    right = "same" if same and only_rounding(apart) else "differ"
    values = {"dropout": case.checkpoint.config.dropout, "n": case.trace.n_steps}
    variant = "dropped" if values["dropout"] else "never"
    return Answer(right, values, variant=variant)


def half_that_taught_more(case: Case) -> Answer:
    """In which half of the training the loss on the dev file fell more."""
    dev = _column(case, "dev_loss")
    refuse_if(len(dev) < 3, OTHER_TRAINING)
    middle = len(dev) // 2
    begin, half, end = (float(dev[at]) for at in (0, middle, -1))
    values = {"begin": begin, "middle": half, "end": end, "at": middle + 1, "epochs": len(dev)}
    return Answer("first" if begin - half > half - end else "second", values)


def _column(case: Case, name: str) -> np.ndarray:
    """A column of the learning curve without gaps."""
    found = np.asarray(curve_of(case).columns.get(name, ()), np.float64)
    refuse_if(not len(found) or not np.isfinite(found).all(), NOT_RECORDED)
    return found


def _kept(case: Case) -> int:
    """The row of the epoch that the checkpoint holds."""
    curve, kept = curve_of(case), case.checkpoint.card.training.get("epochs")
    return curve.epochs.index(kept) if kept in curve.epochs else len(curve.epochs) - 1
