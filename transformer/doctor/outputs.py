"""What the model writes: whether it ends, repeats itself, copies, or writes the same whatever it reads.

One bad output says nothing; half of them do. A decoder alone goes on for as long as it may and often repeats itself
when it is decoded greedily, so that its outputs are judged only where pairs say how they should be.

Source: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration", for repetition; Lee et al. (2018),
"Hallucinations in Neural Machine Translation", for one output to many sources. Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.doctor.findings import MOST_PLACES, Measured, Shown, not_applicable, well
from transformer.doctor.patient import Patient, Test
from transformer.runs.trace import Trace
from words import Sentence, say

HALF = 0.5
FEW = 3
"""Of fewer outputs nothing is said."""
LONGEST_LOOP, TIMES = 8, 4
"""A loop is a row of at most so many pieces, so many times one after another."""
SHORT, LONG = 0.5, 2.0

_NONE: Sentence = say("This model writes nothing.")
_FEW: Sentence = say("There are fewer than {n} outputs to judge by. Give more texts.", n=FEW)
_ALONE: Sentence = say(
    "A decoder alone may go on for as long as it likes. Give pairs that say how a text should go on."
)
_WHY_HALF: Sentence = say("Single sentences go wrong in every model; half of them do not, whichever are taken.")


@dataclass(frozen=True, eq=False)
class Output:
    """One output."""

    trace: Trace  # its run
    ids: tuple[int, ...]  # without the end
    text: str  # the same as text
    ended: bool  # whether it ended by itself
    wanted: str | None  # what it should have been; None if nobody knows


def outputs(patient: Patient) -> list[Output]:
    """The outputs of all runs that were made."""
    wanted: Sequence[str | None] = patient.samples.targets or [None] * len(patient.samples)
    pairs = zip(patient.runs, wanted, strict=True)
    return [_output(run, target, patient.config.end_ids) for run, target in pairs if isinstance(run, Trace)]


def _output(trace: Trace, wanted: str | None, end_ids: tuple[int, ...]) -> Output:
    ids = tuple(i for i in trace.tgt_ids if i not in end_ids)
    return Output(trace, ids, trace.output_text, trace.stop_reason != "length limit", wanted)


def _unfit(patient: Patient, found: Sequence[Output]) -> Measured | None:
    """Why the outputs of a patient cannot be judged; None if they can."""
    if not patient.anatomy.writes:
        return not_applicable(_NONE)
    if len(found) < FEW:
        return not_applicable(_FEW)
    if not patient.anatomy.reads and not patient.samples.targets:
        return not_applicable(_ALONE)
    return None


def _judged(
    share: float,
    said: Sentence,
    meaning: Sentence,
    causes: Sentence,
    faulty: Sequence[Output],
    *,
    why: Sentence = _WHY_HALF,
) -> Measured:
    """What is said of outputs: something is the matter where half or more are wrong."""
    if share < HALF:
        return well(said, share, HALF, why)
    sources = [one.trace.query.source for one in faulty]
    return Measured(
        verdict="look",
        number=share,
        threshold=HALF,
        said=said,
        why=why,
        meaning=meaning,
        causes=causes,
        places=tuple(sources[:MOST_PLACES]),
        shown=Shown(page="step", source=sources[0]) if sources else None,
    )


def endless(patient: Patient) -> Measured:
    """Outputs that never end."""
    found = outputs(patient)
    if unfit := _unfit(patient, found):
        return unfit
    faulty = [one for one in found if not one.ended]
    share = len(faulty) / len(found)
    said = say("{share:.0%} of {n} outputs were cut off at their limit.", share=share, n=len(found))
    return _judged(
        share,
        said,
        say("The model does not say when it is done: outputs go on until a limit stops them."),
        say(
            "Training targets without an end mark, an end mark that the loss left out because it has "
            "the id of the padding, a wrong eos_id in the config, or a model that repeats itself and never comes to "
            "the end. Look at the probability of the end mark at the step where it should come."
        ),
        faulty,
    )


def repeating(patient: Patient) -> Measured:
    """Outputs that run in circles."""
    found = outputs(patient)
    if unfit := _unfit(patient, found):
        return unfit
    faulty = [one for one in found if loops(one.ids) and not loops(one.trace.src_ids)]
    share = len(faulty) / len(found)
    said = say(
        "{share:.0%} of {n} outputs say the same {times} times or more in a row.",
        share=share,
        n=len(found),
        times=TIMES,
    )
    return _judged(
        share,
        said,
        say("The model has lost the thread: what it has written tells it no longer what comes next."),
        say(
            "A decoder that was trained while it saw the future and has to write without it, positions "
            "that are missing or stand still while decoding, a cache that is read wrongly, or too little training."
        ),
        faulty,
    )


def loops(ids: Sequence[int]) -> bool:
    """Whether some pieces stand `TIMES` times one after another."""
    for n in range(1, LONGEST_LOOP + 1):
        alike = 0  # places in a row that hold what stood n places before
        for i in range(n, len(ids)):
            alike = alike + 1 if ids[i] == ids[i - n] else 0
            if alike >= n * (TIMES - 1):
                return True
    return False


def copying(patient: Patient) -> Measured:
    """Outputs that are the source."""
    found = outputs(patient)
    if patient.anatomy.writes and not patient.anatomy.reads:
        return not_applicable(say("A decoder alone has no source to copy."))
    if unfit := _unfit(patient, found):
        return unfit
    if not _is_to_change(patient, found):
        return not_applicable(say("Nothing says that an output should differ from its source. Give pairs."))
    faulty = [one for one in found if _bare(one.text) == _bare(one.trace.source_text) and not _is_right(one)]
    share = len(faulty) / len(found)
    said = say("{share:.0%} of {n} outputs are copies of their source.", share=share, n=len(found))
    return _judged(
        share,
        said,
        say("The model writes down what it reads instead of translating it."),
        say(
            "Pairs in the training data whose two sides are the same, source and target columns that "
            "were mixed up, the language of the output not named where the model expects it, or a training that "
            "ended when copying was all that was learnt."
        ),
        faulty,
    )


def _is_to_change(patient: Patient, found: Sequence[Output]) -> bool:
    """Whether outputs should differ from their sources, as the pairs say, or else the card."""
    if patient.samples.targets:
        same = sum(_bare(one.wanted or "") == _bare(one.trace.source_text) for one in found)
        return same < HALF * len(found)
    card = patient.checkpoint.card
    return bool(card.source_language and card.target_language and card.source_language != card.target_language)


def _is_right(one: Output) -> bool:
    return one.wanted is not None and _bare(one.text) == _bare(one.wanted)


def _bare(text: str) -> str:
    return "".join(text.casefold().split())


def lengths(patient: Patient) -> Measured:
    """Outputs that are far too short or too long."""
    found = outputs(patient)
    if unfit := _unfit(patient, found):
        return unfit
    if patient.samples.targets:
        written, wanted = sum(len(one.text) for one in found), sum(len(one.wanted or "") for one in found)
        said = say(
            "The outputs have {share:.0%} of the characters of the references.", share=written / max(1, wanted)
        )
    else:
        written, wanted = sum(bool(one.ids) for one in found), len(found)
        said = say("{share:.0%} of {n} outputs are not empty.", share=written / wanted, n=wanted)
    ratio = written / max(1, wanted)
    why = say(
        "Over several sentences lengths even out: a model that knows its task writes between half and twice as much "
        "as it should."
    )
    if SHORT < ratio < LONG:
        return well(said, ratio, SHORT, why)
    return Measured(
        verdict="look",
        number=ratio,
        threshold=SHORT if ratio <= SHORT else LONG,
        said=said,
        why=why,
        meaning=say(
            "The outputs are not what the texts say, whatever the pieces in them: most is missing or too much."
        ),
        causes=say(
            "Of too little: an end mark at the start of the training targets, a start id that is the "
            "end mark, a source that the model does not use. Of too much: no end mark in the training targets, or "
            "repetition."
        ),
        shown=Shown(page="step", source=found[0].trace.query.source),
    )


def unvaried(patient: Patient) -> Measured:
    """One output to many sources."""
    found = outputs(patient)
    if unfit := _unfit(patient, found):
        return unfit
    by_source = {one.trace.src_ids: one for one in found}
    if len(by_source) < FEW:
        return not_applicable(_FEW)
    (ids, n), *_ = Counter(one.ids for one in by_source.values()).most_common(1)
    expected = Counter(one.wanted for one in by_source.values() if one.wanted is not None).most_common(1)
    share = (n if n > 1 else 0) / len(by_source)
    said = say("The commonest output is that of {share:.0%} of {n} different sources.", share=share, n=len(by_source))
    why = say("Different sentences need different outputs; two that share one are rare.")
    if expected and expected[0][1] >= n:
        return well(said, share, HALF, why)
    return _judged(
        share,
        said,
        say("The output hardly depends on what is read: the model writes what fits every source a little."),
        say(
            "Cross-attention that is cut off or reads padding only, an encoder whose vectors are all "
            "alike, source and target that were not paired while training, or a tokenizer that turns every text into "
            "unknown pieces."
        ),
        [one for one in by_source.values() if one.ids == ids],
        why=why,
    )


TESTS: tuple[Test, ...] = (
    Test("ending", "behaviour", say("Outputs end"), endless),
    Test("repetition", "behaviour", say("Outputs do not run in circles"), repeating),
    Test("copying", "behaviour", say("Outputs are no copies"), copying),
    Test("lengths", "behaviour", say("Outputs are as long as they should be"), lengths),
    Test("variety", "behaviour", say("Different sources, different outputs"), unvaried),
)
