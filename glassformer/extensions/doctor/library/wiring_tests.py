"""Doctor tests of wiring: search for the code mistake that explains the pairs, logits of the user's forward pass.

A model that was trained with a mistake in its code is right under that mistake. `wiring` looks for the wiring under
which the model knows its pairs; without pairs, for a leak alone, which shows on random texts too: a model that was
trained to copy what it should predict copies any text. `training_code` compares the logits of the author's own forward
pass with those of each wiring: the one that gives the same logits is the code. Where none does, it says what can be
seen of such code without knowing it: whether a later token or another text of the batch changes logits, and whether
the source's order matters.

Source: `glassformer.extensions.wirings`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    WIRING,
    DoctorTest,
    Drawing,
    ExaminationContext,
    InputRow,
    OwnCode,
    once,
)
from glassformer.extensions.doctor.library.findings import DoctorTestResult, NotTestable, PageName, PageTarget
from glassformer.extensions.wirings.catalogue import Variant, texts, titles
from glassformer.extensions.wirings.readings import Ids, PairIds, pairs_of
from glassformer.extensions.wirings.search import NOTHING, UNREADABLE, SearchResult, Tried, WiringSearch, matching
from transformer.analysis.losses import bare, text_ids
from transformer.errors import DataError, GlassformerError, QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.runs.interventions import write
from transformer.runs.reading import padded

COPIED: Final = 0.1
"""Share of the loss of guessing that may be left on random texts, which nobody can predict who does not see them."""
DRAWN: Final = 12  # random texts
SEEN: Final = 1e-6  # of the spread of logits: what is not read moves nothing, or by rounding alone
ORDER_SEEN: Final = 1e-4  # rounding moves sums that are taken in another order


def pairs_as_ids(patient: ExaminationContext) -> list[PairIds]:
    """The pairs that the model can read, as ids; texts alone of a model of one stack."""
    samples, config, found = patient.scored, patient.config, []
    for i in range(len(samples)):
        try:
            (pair,) = pairs_of(patient.checkpoint, samples.only([i]))
        except DataError:
            continue
        n_source = len(config.source_start) + len(pair.source) + len(config.source_end)
        n = max(n_source, len(pair.target) + 2) if patient.anatomy.reads else n_source + len(pair.target)
        if pair.source and n < config.max_len and (pair.target or not samples.targets):
            target = samples.targets[i] if samples.targets else ""
            found.append(replace(pair, other=_by_others(patient, samples.sources[i], target)))
    return found


def _by_others(patient: ExaminationContext, source: str, target: str) -> tuple[Ids, Ids] | None:
    """The ids of a pair by the tokenizers of the other side, where each side has its own."""
    one = patient.checkpoint
    if one.src_tokenizer is one.tgt_tokenizer or not target:
        return None
    try:
        return text_ids(source, one.tgt_tokenizer), bare(text_ids(target, one.src_tokenizer), one)
    except DataError:
        return None


@once
def searched(patient: ExaminationContext) -> SearchResult:
    """What the search found."""
    if not patient.anatomy.writes:
        return NOTHING
    pairs = pairs_as_ids(patient) if patient.samples.targets or not patient.anatomy.reads else []
    if pairs:
        return WiringSearch(patient.checkpoint, pairs, pause=patient.pause).run()
    drawing = Drawing(patient.checkpoint, patient.seed)
    lengths = range(3, min(9, max(4, patient.config.max_len - 4)))
    drawn = [PairIds(drawing.source(n), drawing.target(n)) for n in lengths for _ in range(DRAWN // len(lengths))]
    found = WiringSearch(patient.checkpoint, drawn, pause=patient.pause, most_mistakes=1).run()
    copies = found.best is not None and found.verdict == "another" and found.best.loss.mean <= COPIED * found.chance
    return replace(found, n_pairs=0) if copies else NOTHING


_NO_PAIRS: Final = say(
    "No wiring could be compared, because there are no pairs. Provide a few: each pair is a source with its correct "
    "output."
)
_OR_SETTINGS: Final = say(
    "If your training code is right here, the settings with which the model was opened differ from those of the "
    "training."
)


def example(patient: ExaminationContext) -> tuple[str, str, str, str] | None:
    """The first pair's source and right output, what is written as the model stands, and with the mistake.

    None where there is no pair, or a run cannot make the mistake.
    """
    found, samples = searched(patient), patient.samples
    if found.verdict != "another" or found.best is None or not samples.targets or not found.best.variant.changes:
        return None
    standing = patient.runs[0]
    try:
        changed = patient.checkpoint.query(samples.sources[0], interventions=found.best.variant.changes)
        mistaken = patient.checkpoint.run(changed)
    except GlassformerError:
        return None
    return samples.sources[0], samples.targets[0], getattr(standing, "output_text", ""), mistaken.output_text


def compared(found: SearchResult | None) -> list[tuple[Sentence, float]]:
    """The wirings that were compared on the pairs, with their losses: as it stands, the best, those as good."""
    if found is None or found.standing is None:
        return []
    best = () if found.best is None or found.verdict == "as_it_stands" else (found.best, *found.equal)
    rows = [(say("As the model stands"), found.standing), *((titles(one.names), one) for one in best)]
    return [(name, one.plain.mean) for name, one in rows]


@DoctorTest(
    "wiring",
    say("The model computes as it was trained"),
    why=say(
        "A model that was trained with a mistake in its code knows its pairs only if the run makes the same mistake. "
        "Losses are compared at the best temperature, so a mistake that only makes the model surer explains nothing."
    ),
    meaning=say("The parameters are right for another computation than the one that is made now."),
    cause=WIRING,
)
def wiring(patient: ExaminationContext) -> DoctorTestResult:
    """Whether another wiring explains the pairs."""
    if not patient.anatomy.writes:
        raise NotTestable("This model writes nothing, so its wiring is not compared on pairs.")
    if not all(bool(one.isfinite().all()) for one in patient.checkpoint.model.parameters()):
        # A wiring that leaves such a parameter out would explain the pairs best.
        raise NotTestable("Some parameters are NaN or infinite, so no wirings are compared.")
    found = searched(patient)
    if found.verdict == "untested" or found.standing is None:
        if found.n_pairs > 0:
            raise NotTestable("There are too few pairs that this model can read to compare wirings. Provide more.")
        raise NotTestable(_NO_PAIRS)
    if found.verdict == "another" and found.best is not None:
        return _named(found.best.variant, joined(" ", _compared_with(found, found.best)), found.margin)
    if found.verdict == "unexplained":
        raise NotTestable(joined(" ", list(_unexplained(found))))
    well = say_n(
        "{n} wiring was compared on the pairs; none explains them better than the model as it stands (loss "
        "{loss:.3g} nats per token).",
        "{n} wirings were compared on the pairs; none explains them better than the model as it stands (loss "
        "{loss:.3g} nats per token).",
        found.n_tried,
        loss=found.standing.plain.mean,
    )
    said = [well, *_told_apart([one.names for one in found.equal]), *_too_slow(found)]
    return DoctorTestResult(verdict="well", number=found.margin, said=joined(" ", said))


def _compared_with(found: SearchResult, best: Tried) -> list[Sentence]:
    """The losses with a mistake and without, what is changed, and what nothing tells from it."""
    after, before = best.plain.mean, 0.0 if found.standing is None else found.standing.plain.mean
    if not found.n_pairs:
        losses = say(
            "On random texts, which nobody can predict, the loss is {after:.3g} nats per token with this mistake, and "
            "{before:.3g} as the model stands.",
            after=after,
            before=before,
        )
    elif before >= UNREADABLE:
        losses = say(
            "With this mistake, the loss on the pairs is {after:.3g} nats per token; as it stands, the model cannot "
            "read them.",
            after=after,
        )
    else:
        losses = say(
            "With this mistake, the loss on the pairs is {after:.3g} nats per token; as the model stands, it is "
            "{before:.3g}; guessing would give {chance:.3g}.",
            after=after,
            before=before,
            chance=found.chance,
        )
    change = [say("What is changed: {change}.", change=best.variant.told)] if best.variant.changes else []
    return [losses, *change, *_told_apart([one.names for one in found.equal])]


def _unexplained(found: SearchResult) -> Iterator[Sentence]:
    """That no wiring explains the pairs, and which is nearest."""
    before = 0.0 if found.standing is None else found.standing.plain.mean
    yield say(
        "Not explained by any known wiring: the loss on the pairs is {before:.3g} nats per token (guessing would give "
        "{chance:.3g}), and none of the {n} wirings that were compared brings it down to that of a trained model.",
        before=before,
        chance=found.chance,
        n=found.n_tried,
    )
    if found.best is not None and found.margin > 0:
        title, loss = titles(found.best.names), found.best.plain.mean
        yield say("The nearest is “{title}”, with a loss of {loss:.3g}.", title=title, loss=loss)
    yield from _too_slow(found)


def _too_slow(found: SearchResult) -> Iterator[Sentence]:
    """That the time was up before the end."""
    if not found.whole:
        yield say("There was no time to try all of them, and every two at once.")


def _told_apart(equal: list[tuple[str, ...]]) -> Iterator[Sentence]:
    """Other wirings that nothing tells from the one that is named."""
    if equal:
        yield say("The pairs cannot tell it from: {others}.", others=joined("; ", list(map(titles, equal))))


def _named(variant: Variant, said: Sentence, number: float) -> DoctorTestResult:
    """What is said where one wiring is that of the training."""
    of = [texts()[name] for name in variant.names]
    page: PageName = of[0].page  # type: ignore[assignment]  # the catalogue's test reads them all
    return DoctorTestResult(
        verdict="broken",
        number=number,
        said=said,
        headline=joined(" ", [one.headline for one in of]),
        meaning=joined(" ", [one.about for one in of]),
        causes=_OR_SETTINGS,
        code=tuple((one.wrong, one.right) for one in of),
        shown=PageTarget(page=page, panel=of[0].panel, changes=write(variant.changes)),
    )


# ------------------------------------------------------------------------------------------------ the author's code


def _own(patient: ExaminationContext) -> OwnCode:
    if patient.own is None or not patient.anatomy.writes:
        raise NotTestable("There is no forward pass of a training that gives logits.")
    return patient.own


def _logits(patient: ExaminationContext, *rows: InputRow) -> Tensor:
    """Logits [B, T, V] of rows that are read together."""
    return _own(patient).logits(patient.checkpoint, rows)


def _far(before: Tensor, after: Tensor) -> Tensor:
    """How far the logits of each token move [T], in units of their spread; a `QueryError` where some are not finite.

    About 1 where nothing is left of them, 1e-6 where only the order of sums changed.
    """
    far = (after - before).abs().amax(dim=-1) / before.float().std(dim=-1).mean().clamp_min(1e-30)
    if not bool(far.isfinite().all()):
        raise QueryError("The training's forward pass computes NaN or infinite values.")
    return far


def _lengths(patient: ExaminationContext) -> list[InputRow]:
    """Rows of different lengths; of one, where nothing can fill them up."""
    whole = patient.rows[:3]
    if patient.config.pad_id is None:
        n, m = (min(map(len, side)) for side in ([r.source for r in whole], [r.target for r in whole]))
        return [InputRow(row.source[:n], row.target[:m]) for row in whole]
    ends = patient.config.source_end
    half = [InputRow((*r.source[: len(r.source) // 2], *ends), r.target[: len(r.target) // 2]) for r in whole]
    return [*whole, *half]


of_code = partial(DoctorTest, "wiring")


@of_code(
    say("The training's forward pass: all values are finite"),
    causes=say(
        "The learning rate is too high, or a mask closes everything that a token could attend to: it is the wrong "
        "way round."
    ),
)
def own_finite(patient: ExaminationContext) -> DoctorTestResult:
    """Whether any logit is NaN or infinite."""
    odd = sum(int((~_logits(patient, row).isfinite()).sum()) for row in patient.rows)
    said = say_n("{n:,} logit is NaN or infinite.", "{n:,} logits are NaN or infinite.", odd)
    return DoctorTestResult(verdict="broken" if odd else "well", number=odd, said=said)


@of_code(
    say("The training's forward pass computes what the model’s parameters say"),
    meaning=say("This program computes other logits from the same parameters."),
    causes=say(
        "Either this program was told something wrong about the model, or the code has a step that no known mistake "
        "explains: dropout that eval() does not switch off, for example, or a layer that this program does not have."
    ),
    cause=WIRING,
)
def training_code(patient: ExaminationContext) -> DoctorTestResult:
    """Which wiring gives the logits of the training's own forward pass."""
    own, rows = _own(patient), _lengths(patient)
    theirs, config = _logits(patient, *rows), patient.config
    fill = config.fill_id
    source = padded([one.source for one in rows], fill) if patient.anatomy.reads else None
    read = padded([one.target for one in rows], fill)
    counts = torch.arange(read.size(1)) < torch.tensor([[len(one.target)] for one in rows])

    def differs(logits: Tensor) -> float:
        return float(_far(theirs[counts], logits.float().cpu()[counts]).max())

    found, nearest = matching(patient.checkpoint, source, read, differs, own.agrees, pause=patient.pause)
    if found and not found[0].names:
        said = say("Its logits are those of this program, for rows of several lengths in one batch.")
        return DoctorTestResult(verdict="well", number=nearest, threshold=own.agrees, said=said)
    if found:
        said = say("With this mistake, this program computes the logits of your code; without it, others.")
        apart = list(dict.fromkeys(one.names for one in found if one.names != found[0].names))
        return _named(found[0], joined(" ", [said, *_told_apart(apart)]), nearest)
    said = say(
        "The logits differ from this program’s, whichever known mistake it makes: by at least {far:.3g} of their "
        "standard deviation.",
        far=nearest,
    )
    return DoctorTestResult(
        verdict="broken", number=nearest, threshold=own.agrees, said=joined(" ", [said, *_symptoms(patient)])
    )


def _symptoms(patient: ExaminationContext) -> Iterator[Sentence]:
    """What can be seen of code that is not known."""
    drawing = Drawing(patient.checkpoint, patient.seed)
    later = past = 0.0
    for row in patient.rows:
        patient.pause()
        before, n = _logits(patient, row)[0], len(row.target)
        for place in {1, n - 1}:
            target = (*row.target[:place], drawing.another(row.target[place]), *row.target[place + 1 :])
            far = _far(before, _logits(patient, InputRow(row.source, target))[0])
            later = max(later, float(far[:place].max()))
            past = max(past, float(far[-1]) if place < n - 1 else 0.0)
    if later > SEEN:
        yield say("A later token changes earlier logits: the decoder sees what it has to predict.")
    if past <= SEEN:
        yield say("An earlier token changes nothing: the past is closed.")
    rows = _lengths(patient)
    together = _logits(patient, *rows)
    batch = max(
        float(_far(_logits(patient, row)[0], read[: len(row.target)]).max())
        for row, read in zip(rows, together, strict=True)
    )
    if batch > _own(patient).agrees:
        yield say("Padding or other texts of the batch change the logits of a text.")
    if patient.anatomy.reads:
        ids = drawing.source(len(patient.rows[0].source))
        turned = [_logits(patient, InputRow(one, patient.rows[0].target))[0] for one in (ids, ids[::-1])]
        if float(_far(turned[0], turned[1]).max()) <= ORDER_SEEN:
            yield say("The order of the source changes nothing: positions do not reach it, or it does not reach them.")


TESTS = (wiring,)
OF_CODE = (own_finite, training_code)
"""Of a training's own forward pass, which a watch has."""
