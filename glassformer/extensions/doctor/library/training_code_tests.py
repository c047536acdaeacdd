"""Doctor tests of the user's own forward pass: finite logits, masks, batching, source order, agreement.

The tests of `wiring_tests` run this program's model, whose masks are right; those here run the training's own code.
Pieces are changed, and padding and other sentences added, and only what depends on them may change. Logits are also
compared with this program's, from the same parameters, for a target of one token, where the causal mask makes no
difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor

from glassformer.extensions.doctor.library.context import (
    DoctorTest,
    Drawing,
    ExaminationContext,
    InputRow,
    OwnCode,
    moved,
)
from glassformer.extensions.doctor.library.findings import ONE_TEXT, DoctorTestResult, NotTestable
from glassformer.extensions.doctor.library.output_tests import ORDER_LOST
from transformer.errors import QueryError
from transformer.i18n import Sentence, say, say_n

SEEN = 1e-6
"""Of the spread of logits. What is not read moves nothing, or by rounding alone."""
ORDER_SEEN = 1e-4  # rounding moves sums that are taken in another order

of_code = partial(DoctorTest, "wiring")


def _own(patient: ExaminationContext) -> OwnCode:
    if patient.own is None or not patient.anatomy.writes:
        raise NotTestable("There is no forward pass of a training that gives logits.")
    return patient.own


def _logits(patient: ExaminationContext, *rows: InputRow) -> Tensor:
    """Logits [B, T, V] of rows that are read together."""
    return _own(patient).logits(patient.checkpoint, rows)


def _far(before: Tensor, after: Tensor) -> Tensor:
    """How far the logits of each token move [T]; a `QueryError` where some are not finite."""
    far = moved(before, after)
    if not bool(far.isfinite().all()):
        raise QueryError("The training's forward pass computes NaN or infinite values.")
    return far


def _found(well: bool, number: float, said: Sentence) -> DoctorTestResult:
    return DoctorTestResult(verdict="well" if well else "broken", number=number, said=said)


def _agreeing(patient: ExaminationContext, number: float, said: Sentence) -> DoctorTestResult:
    """The finding where two computations have to give the same."""
    most = _own(patient).agrees
    return replace(_found(number <= most, number, said), threshold=most)


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
    return _found(not odd, odd, say_n("{n:,} logit is NaN or infinite.", "{n:,} logits are NaN or infinite.", odd))


@of_code(
    say("The training's forward pass: no token sees a later one"),
    threshold=SEEN,
    meaning=say(
        "The decoder sees the token that it has to predict and learns to copy it. The loss falls to nearly 0 and "
        "means nothing, and what the model then writes is worthless."
    ),
    causes=say(
        "The causal mask is missing, inverted or shifted. With PyTorch's own layers, pass "
        "`tgt_mask=nn.Transformer.generate_square_subsequent_mask(T)`, or a Boolean mask that is True above the "
        "diagonal: True means “may not attend”."
    ),
)
def own_leak(patient: ExaminationContext) -> DoctorTestResult:
    """Change later pieces: earlier rows must not move."""
    most = max(float(far[:place].max()) for place, far in _changed(patient))
    said = say(
        "When a later token is replaced, earlier logits change by {most:.3g} of their standard deviation.", most=most
    )
    return _if_a_mask(patient, _found(most <= SEEN, most, said))


def _if_a_mask(patient: ExaminationContext, found: DoctorTestResult) -> DoctorTestResult:
    """A finding that names masks as its cause, or none of them where logits differ without any."""
    agrees, past = own_agrees.measure(patient), own_past.measure(patient)
    if found.verdict == "well" or agrees.verdict == "well" or past.verdict != "well":  # an inverted one hides the past
        return found
    differs = say(
        "{said} With one token, a mask that shows the past closes nothing, so something other than the mask differs. "
        "Find that first: for example, a `view` or `reshape` that mixes tokens with heads or with the batch.",
        said=agrees.said,
    )
    return replace(found, causes=differs)


@of_code(
    say("The training's forward pass: a token sees those before it"),
    threshold=SEEN,
    causes=say(
        "The causal mask is the wrong way round: PyTorch's own layers close what is True, other code closes what is "
        "False."
    ),
)
def own_past(patient: ExaminationContext) -> DoctorTestResult:
    """Change earlier pieces: the last row must move."""
    least = min(float(far[-1]) for place, far in _changed(patient) if place < len(far) - 1)
    said = say(
        "When an earlier token is replaced, the last logits change by {least:.3g} of their standard deviation.",
        least=least,
    )
    return _found(least > SEEN, least, said)


def _changed(patient: ExaminationContext) -> Iterator[tuple[int, Tensor]]:
    """A place in a target of which the piece is exchanged, and how far the logits of each token move [T]."""
    drawing = Drawing(patient.checkpoint, patient.seed)
    for row in patient.rows:
        before = _logits(patient, row)[0]
        for place in {1, len(row.target) - 1}:
            patient.pause()
            other = drawing.another(row.target[place])
            target = (*row.target[:place], other, *row.target[place + 1 :])
            yield place, _far(before, _logits(patient, InputRow(row.source, target))[0])


@of_code(
    say("The training's forward pass: padding and other sentences change nothing"),
    causes=say(
        "A padding mask is missing or inverted (nn.Transformer needs src_key_padding_mask and "
        "memory_key_padding_mask), or the axes of batch and tokens are exchanged (batch_first)."
    ),
)
def own_batch(patient: ExaminationContext) -> DoctorTestResult:
    """Read rows of several lengths together, and each alone."""
    rows = _lengths(patient)
    together = _logits(patient, *rows)
    most = max(
        float(_far(_logits(patient, row)[0], read[: len(row.target)]).max())
        for row, read in zip(rows, together, strict=True)
    )
    said = say(
        "When a text is read together with other texts, its logits change by {most:.3g} of their standard deviation.",
        most=most,
    )
    return _if_a_mask(patient, _agreeing(patient, most, said))


def _lengths(patient: ExaminationContext) -> list[InputRow]:
    """Rows of different lengths; of one, where nothing can fill them up."""
    whole = patient.rows[:3]
    if patient.config.pad_id is None:
        n, m = (min(map(len, side)) for side in ([r.source for r in whole], [r.target for r in whole]))
        return [InputRow(row.source[:n], row.target[:m]) for row in whole]
    ends = patient.config.source_end
    half = [InputRow((*r.source[: len(r.source) // 2], *ends), r.target[: len(r.target) // 2]) for r in whole]
    return [*whole, *half]


@of_code(
    say("The training's forward pass: the order of the source matters"),
    threshold=ORDER_SEEN,
    meaning=ORDER_LOST,
    causes=say(
        "Positions are not added to the embeddings, or the result is discarded; or the source does not reach the "
        "decoder."
    ),
)
def own_order(patient: ExaminationContext) -> DoctorTestResult:
    """Turn the source round: the logits must move."""
    if not patient.anatomy.reads:
        raise NotTestable(ONE_TEXT)
    drawing, most = Drawing(patient.checkpoint, patient.seed), 0.0
    for row in patient.rows:
        patient.pause()
        ids = drawing.source(len(row.source))
        before, after = (_logits(patient, InputRow(one, row.target))[0] for one in (ids, ids[::-1]))
        most = max(most, float(_far(before, after).max()))
    said = say("When the source is turned round, logits change by {most:.3g} of their standard deviation.", most=most)
    return _found(most > ORDER_SEEN, most, said)


@of_code(
    say("The training's forward pass computes what its parameters say"),
    meaning=say(
        "This program computes other logits from the same parameters. Either it was told something wrong about the "
        "model, or the code has a step that its parameters do not show."
    ),
    causes=say(
        "A table of positions that is not added, embeddings that are scaled or not, a wrong answer to a question, "
        "dropout that eval() does not switch off, or a residual connection or norm that is missing."
    ),
)
def own_agrees(patient: ExaminationContext) -> DoctorTestResult:
    """Compute the same logits from the same parameters."""
    far = _own(patient).difference(patient.checkpoint, patient.rows)
    said = say(
        "For targets of one token, the logits differ from this program's by {far:.3g} of their standard deviation.",
        far=far,
    )
    return _agreeing(patient, far, said)


TESTS = (own_finite, own_leak, own_past, own_batch, own_order, own_agrees)
