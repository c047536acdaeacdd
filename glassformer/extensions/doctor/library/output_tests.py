"""Doctor tests of outputs: no end, repetition, copies, length, no variety; use of token order and of the source.

One bad output says nothing; half of them do. A decoder-only model writes up to its maximum length and often repeats
itself in greedy decoding: its outputs are judged only against pairs.

Source: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration", for repetition; Lee et al. (2018),
"Hallucinations in Neural Machine Translation", for one output to many sources.

Order: the tokens before the last one change places. Attention without positions takes them as a set (Vaswani et al.
(2017), section 3.5), so in the first layer the last token's result stays the same up to rounding. Later layers read
what the causal mask has computed from the order, so only the first layer is tested.

Source: the model reads the right output three more times, each with another source, and its predictions are compared
with those for the right source.

    KL = sum over pieces of p(piece | source) (log p(piece | source) - log p(piece | another source))

Shapes: S source tokens, T target tokens, V target vocabulary, D d_model.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    BELOW,
    DoctorTest,
    Drawing,
    ExaminationContext,
    InputRow,
    Texts,
    read,
)
from glassformer.extensions.doctor.library.findings import (
    NO_OUTPUT,
    ONE_TEXT,
    DoctorTestResult,
    NotTestable,
    PageTarget,
    at_least,
)
from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Stack
from transformer.model.taps import NO_TAP, Recorder, tap_of
from transformer.runs.recording_pass import check_recorded
from transformer.runs.trace import Trace

HALF = 0.5
FEW = 3
"""Of fewer outputs nothing is said."""
LONGEST_LOOP, TIMES = 8, 4
"""A loop is a row of at most so many pieces, so many times one after another."""
SHORT, LONG = 0.5, 2.0

_FEW: Sentence = say("There are fewer than {n} outputs, too few to judge. Provide more texts.", n=FEW)

of_outputs = partial(
    DoctorTest,
    "behaviour",
    threshold=HALF,
    why=say(
        "Every model gets some sentences wrong, but a healthy model never gets half of them wrong, whichever "
        "sentences you choose."
    ),
)


@dataclass(frozen=True, eq=False)
class TestedOutput:
    """One output."""

    trace: Trace  # its run
    ids: tuple[int, ...]  # without the end
    text: str  # the same as text
    ended: bool  # whether it ended by itself
    wanted: str | None  # what it should have been; None if nobody knows


def outputs(patient: ExaminationContext) -> list[TestedOutput]:
    """The outputs of all runs that were made."""
    wanted: Sequence[str | None] = patient.samples.targets or [None] * len(patient.samples)
    ends = patient.config.end_ids
    return [
        TestedOutput(
            run,
            tuple(i for i in run.tgt_ids if i not in ends),
            run.output_text,
            run.stop_reason != "length limit",
            target,
        )
        for run, target in zip(patient.runs, wanted, strict=True)
        if isinstance(run, Trace)
    ]


def _judgeable(patient: ExaminationContext) -> list[TestedOutput]:
    """The outputs of a patient; `NotTestable` where they cannot be judged."""
    found = outputs(patient)
    if not patient.anatomy.writes:
        raise NotTestable(NO_OUTPUT)
    if len(found) < FEW:
        raise NotTestable(_FEW)
    if not patient.anatomy.reads and not patient.samples.targets:
        raise NotTestable(
            "A decoder-only model may continue a text indefinitely, so its outputs cannot be judged without pairs. "
            "Provide pairs that show how a text should continue."
        )
    return found


def _judged(share: float, said: Sentence, faulty: Sequence[TestedOutput]) -> DoctorTestResult:
    """What is said of outputs: something is the matter where half or more are wrong."""
    if share < HALF:
        return DoctorTestResult(verdict="well", number=share, said=said)
    sources = tuple(one.trace.query.source for one in faulty)
    shown = PageTarget(page="step", source=sources[0]) if sources else None
    return DoctorTestResult(verdict="look", number=share, said=said, places=sources, shown=shown)


@of_outputs(
    say("Outputs end"),
    causes=say(
        "The training targets had no end mark, the loss ignored the end mark because its id is also that of the "
        "padding, eos_id in the config is wrong, or the model repeats itself and never reaches the end. Look at "
        "the probability of the end mark at the step where it should come."
    ),
    cause=BELOW + 7,
)
def ending(patient: ExaminationContext) -> DoctorTestResult:
    """Outputs that never end. One that is cut before it is as long as its reference says nothing."""
    found = _judgeable(patient)
    pieces = patient.checkpoint.tgt_tokenizer.encode
    faulty = [one for one in found if not one.ended and len(one.ids) > len(pieces(one.wanted or "").ids)]
    share = len(faulty) / len(found)
    said = say("{share:.0%} of {n} outputs were cut off at the length limit.", share=share, n=len(found))
    judged = _judged(share, said, faulty)
    if share < 1 or not patient.samples.targets:
        return judged
    begun = sum(_bare(one.text).startswith(_bare(one.wanted or "")) for one in found)
    knows = begun >= HALF * len(found)
    if not knows and not patient.anatomy.reads:  # it may be made to go on and on
        return judged
    headline = say("Its outputs begin right, but none ends: the model never learnt to write the end mark.")
    return replace(judged, verdict="broken", headline=headline if knows else "")


@of_outputs(
    say("Outputs do not loop"),
    causes=say(
        "The model does not know where the output ends and fills what is left, it was trained on texts that repeat "
        "themselves, or there was too little training."
    ),
)
def repetition(patient: ExaminationContext) -> DoctorTestResult:
    """Outputs that run in circles."""
    found = _judgeable(patient)
    faulty = [one for one in found if loops(one.ids) and not loops(one.trace.src_ids)]
    share = len(faulty) / len(found)
    said = say(
        "{share:.0%} of {n} outputs repeat the same tokens at least {times} times in a row.",
        share=share,
        n=len(found),
        times=TIMES,
    )
    return _judged(share, said, faulty)


def loops(ids: Sequence[int]) -> bool:
    """Whether some pieces stand `TIMES` times one after another."""
    for n in range(1, LONGEST_LOOP + 1):
        alike = 0  # places in a row that hold what stood n places before
        for i in range(n, len(ids)):
            alike = alike + 1 if ids[i] == ids[i - n] else 0
            if alike >= n * (TIMES - 1):
                return True
    return False


@of_outputs(
    say("Outputs are not copies of the source"),
    causes=say(
        "Some training pairs had the same text on both sides, source and target columns were mixed up, the output "
        "language is not named where the model expects it, or training ended when the model had only learnt to "
        "copy."
    ),
)
def copying(patient: ExaminationContext) -> DoctorTestResult:
    """Outputs that are the source."""
    if patient.anatomy.writes and not patient.anatomy.reads:
        raise NotTestable(ONE_TEXT)
    found = _judgeable(patient)
    if not _is_to_change(patient, found):
        raise NotTestable(
            "It is unknown whether outputs should differ from their sources. Provide pairs in which they differ."
        )
    copies = [one for one in found if _bare(one.text) == _bare(one.trace.source_text)]
    faulty = [one for one in copies if one.wanted is None or _bare(one.text) != _bare(one.wanted)]
    share = len(faulty) / len(found)
    said = say("{share:.0%} of {n} outputs are copies of their source.", share=share, n=len(found))
    return _judged(share, said, faulty)


def _is_to_change(patient: ExaminationContext, found: Sequence[TestedOutput]) -> bool:
    """Whether outputs should differ from their sources, as the pairs say, or else the card."""
    if patient.samples.targets:
        same = sum(_bare(one.wanted or "") == _bare(one.trace.source_text) for one in found)
        return same < HALF * len(found)
    card = patient.checkpoint.card
    return bool(card.source_language and card.target_language and card.source_language != card.target_language)


def _bare(text: str) -> str:
    return "".join(text.casefold().split())


@DoctorTest(
    "behaviour",
    say("Outputs have the right length"),
    why=say(
        "Over several sentences, differences in length even out: a model that knows its task writes between half "
        "and twice as much as it should."
    ),
)
def lengths(patient: ExaminationContext) -> DoctorTestResult:
    """Outputs that are far too short or too long."""
    found = _judgeable(patient)
    if patient.samples.targets:
        written, wanted = sum(len(one.text) for one in found), sum(len(one.wanted or "") for one in found)
        said = say("The outputs have {share:.0%} as many characters as the references.", share=written / max(1, wanted))
    else:
        written, wanted = sum(bool(one.ids) for one in found), len(found)
        said = say("{share:.0%} of {n} outputs are not empty.", share=written / wanted, n=wanted)
    ratio = written / max(1, wanted)
    if SHORT < ratio < LONG:
        return DoctorTestResult(verdict="well", number=ratio, threshold=SHORT, said=said)
    short, shown = ratio <= SHORT, PageTarget(page="step", source=found[0].trace.query.source)
    causes = say("The training targets have no end mark, or the model repeats itself.")
    if short:
        causes = say("The training targets start with an end mark, or the start id is the id of the end mark.")
    nearer = SHORT if short else LONG
    return DoctorTestResult(verdict="look", number=ratio, threshold=nearer, said=said, causes=causes, shown=shown)


@DoctorTest(
    "behaviour",
    say("Different sources, different outputs"),
    threshold=HALF,
    why=say("Different sentences need different outputs, so two sentences rarely have the same output."),
    meaning=say("The output hardly depends on the source: the model writes something that fits every source a little."),
    causes=say(
        "The encoder's vectors are all nearly the same, source and target were paired wrongly in training, or the "
        "tokenizer turns every text into unknown tokens."
    ),
)
def variety(patient: ExaminationContext) -> DoctorTestResult:
    """One output to many sources."""
    by_source = {one.trace.src_ids: one for one in _judgeable(patient)}
    if len(by_source) < FEW:
        raise NotTestable(_FEW)
    (ids, n), *_ = Counter(one.ids for one in by_source.values()).most_common(1)
    expected = Counter(one.wanted for one in by_source.values() if one.wanted is not None).most_common(1)
    share = (n if n > 1 else 0) / len(by_source)
    said = say(
        "The most common output was written for {share:.0%} of {n} different sources.", share=share, n=len(by_source)
    )
    if expected and expected[0][1] >= n:
        return DoctorTestResult(verdict="well", number=share, said=said)
    return _judged(share, said, [one for one in by_source.values() if one.ids == ids])


TESTS = (ending, repetition, copying, lengths, variety)


TOKENS = 8  # that change places
TRIES = 3
ORDER_LOST = say("The order of the tokens is lost: to this model, every sentence is an unordered bag of tokens.")
ORDER_SEEN = 1e-4
"""Of the length of what attention gives: more than rounding moves it, less than positions do (`calibrated.json`)."""
SOURCE_SEEN = 0.01
"""Nats a token. A cross-attention that is cut moves nothing at all; see `calibrated.json` for the shipped models."""


@DoctorTest(
    "wiring",
    say("Token order matters"),
    threshold=ORDER_SEEN,
    why=say(
        "Without positions, reordering the tokens changes the attention output only by rounding, which is far below "
        "the threshold. In the shipped checkpoints, it changes by at least {least:g} times its length.",
        least=at_least("positions"),
    ),
    meaning=ORDER_LOST,
    causes=say(
        "The position vectors are not added (or the result is discarded), their table is all zeros because the "
        "loaded file did not contain it, or all rotary angles are 0. Look at the table of positions."
    ),
    cause=BELOW,
)
def positions(patient: ExaminationContext) -> DoctorTestResult:
    """Let tokens change places: the first layer's attention must give the last one something else."""
    if patient.config.placing.adds == "nothing":
        return _no_positions(patient)
    found = {}
    for stack in patient.anatomy.stacks:
        patient.pause()
        if not _tells(patient, stack):
            raise NotTestable(
                "The first layer of this model ignores positions by design, and no other layer can show whether "
                "the model uses them."
            )
        found[stack.name] = max(_turned(patient, stack, seed) for seed in range(TRIES))
    least = min(found.values())
    lost = least <= ORDER_SEEN
    said = say(
        "When tokens are reordered, the attention output of the first layer changes by {least:.2g} of its length.",
        least=least,
    )
    places = tuple(name for name, far in found.items() if far <= ORDER_SEEN)
    shown = PageTarget(page="positions", panel="table")
    return DoctorTestResult(verdict="broken" if lost else "well", number=least, said=said, places=places, shown=shown)


def _no_positions(patient: ExaminationContext) -> DoctorTestResult:
    return DoctorTestResult(
        verdict="look",
        said=say("According to its config, this model does not use positions."),
        meaning=ORDER_LOST
        if patient.anatomy.reads
        else say(
            "This decoder can tell a token's position only from the causal mask, and only from the second layer on."
        ),
        causes=say(
            "Some models are trained without positions. If this one was trained with positions, its config is "
            "wrong: enter the kind of positions used in training."
        ),
        shown=PageTarget(page="inside", panel="model"),
    )


def _tells(patient: ExaminationContext, stack: Stack) -> bool:
    """Whether the first layer of a stack has positions, and sees more than one token."""
    window = patient.config.window(0) if stack.name == "decoder" else 0
    return 0 not in patient.config.unplaced_layers and (not window or window > 2) and patient.config.max_len > 2


@torch.inference_mode()
def _turned(patient: ExaminationContext, stack: Stack, seed: int) -> float:
    """How far the first attention's output at the last token moves, as a share of its length."""
    drawing = Drawing(patient.checkpoint, seed)
    window = patient.config.window(0) if stack.name == "decoder" else 0
    n = min(TOKENS, patient.config.max_len, window or TOKENS)
    ids = drawing.source(n) if stack.name == "encoder" else drawing.target(n)
    site = f"{stack.name}.0.self_attn.output"
    made: list[Tensor] = []
    for order in (ids, (*ids[-2::-1], ids[-1])):
        recorder, source = Recorder([site]), torch.tensor([order])
        if stack.name == "encoder":
            patient.model.encode(source, tap=tap_of(recorder))
        else:
            read(patient, Texts(torch.tensor([patient.rows[0].source]), source), tap=tap_of(recorder))
        made.append(recorder.values[site][0, -1].float())  # [D]
    before, after = made
    far = (after - before).norm() / before.norm().clamp_min(1e-30)
    if not bool(far.isfinite()):
        raise QueryError("At {site}, this model computes NaN (not a number) or infinite values.", site=site)
    return float(far)


@DoctorTest(
    "wiring",
    say("The output depends on the source"),
    threshold=SOURCE_SEEN,
    why=say(
        "If the model does not use the source, a different source changes nothing (0 nats). In the shipped "
        "checkpoints, a different source changes the next token's probabilities by at least {least:g} nats on "
        "average.",
        least=at_least("source"),
    ),
    causes=say(
        "The encoder's output does not reach the decoder, the mask closes all keys of cross-attention (it uses "
        "True for “may not attend” where True should mean “may attend”), the weights of cross-attention were not "
        "loaded, or the model was not trained long enough to use the source (its loss then stays at the level of a "
        "language model)."
    ),
    cause=BELOW,
    of_wiring=True,
)
def source(patient: ExaminationContext) -> DoctorTestResult:
    """Give the decoder the memory of another source: what it thinks must change."""
    if "cross" not in patient.anatomy.kinds:
        raise NotTestable(ONE_TEXT)
    rows = patient.written
    if not rows:
        raise NotTestable(
            "This test compares different sources, but there are no sentences. Provide pairs or sentences."
        )
    drawing, config = Drawing(patient.checkpoint, patient.seed), patient.config
    says_nothing = config.unk_id if config.unk_id is not None else config.eos_id
    moves: dict[str, list[float]] = {"another": [], "shuffled": [], "blank": []}
    for i, row in enumerate(rows):
        patient.pause()
        others = [one.source for one in rows[i + 1 :] + rows[:i] if one.source != row.source]
        another = others[0] if others else drawing.source(len(row.source))
        inner = list(row.source)
        random.Random(patient.seed).shuffle(inner)
        blank = (says_nothing,) * len(row.source)
        for name, ids in zip(moves, (another, tuple(inner), blank), strict=True):
            moves[name].append(_divergence(patient, row, ids))
    means = {name: fmean(values) for name, values in moves.items()}
    used = max(means.values()) > SOURCE_SEEN
    shown = PageTarget(page="attention", panel="overview", source=rows[0].text, kind="cross", layer=None if used else 0)
    said = say("The next token's probabilities change by {another:.2g} nats (KL) if the model reads another "
               "sentence's source, by {shuffled:.2g} if the source is shuffled, and by {blank:.2g} if it is blank.",
               another=means["another"], shuffled=means["shuffled"], blank=means["blank"])  # fmt: skip
    return DoctorTestResult(verdict="well" if used else "broken", number=max(means.values()), said=said, shown=shown)


@torch.inference_mode()
def _divergence(patient: ExaminationContext, row: InputRow, other: tuple[int, ...]) -> float:
    """Mean over the target's tokens of how far the next piece's probabilities are from those with another source."""

    def log_probs(source: tuple[int, ...]) -> Tensor:
        made = partial(patient.model, torch.tensor([source]), torch.tensor([row.target]))
        logits = made()
        check_recorded((logits,), lambda tap: made(tap=tap), tap=NO_TAP)
        return logits[0].cpu().float().log_softmax(dim=-1)  # [T, V]

    right, wrong = log_probs(row.source), log_probs(other)
    return float((right.exp() * (right - wrong)).nan_to_num(0.0).sum(dim=-1).mean())


ORDER_TESTS = (positions, source)
