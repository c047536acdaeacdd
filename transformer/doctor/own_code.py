"""The training's own forward pass, called as the training calls it: its masks, its batches, and its order of tokens.

The tests of `wiring` look at this program's model, whose masks are right. Those here look at the code that trains:
pieces are changed, and padding and other sentences are added, and only what depends on them may move. Logits are
also compared with those that this program computes from the same parameters, of a target of one token, for which no
mask makes a difference. Gradients are on, as some layers of torch compute otherwise without.

Shapes: B rows, S source tokens, T target tokens, V target vocabulary.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from transformer.checkpoint.load import Checkpoint
from transformer.doctor.findings import Measured, NotTested
from transformer.doctor.patient import Patient, Test
from transformer.doctor.read_rows import Drawing, Row, moved, result
from transformer.errors import CheckpointError, shown
from transformer.runs.running import padded
from words import say

Forward = Callable[..., Tensor]
"""Logits [B, T, V] for source ids [B, S] and what the decoder reads [B, T]; a model of one stack has one argument.
Both are padded on the right with the padding id."""
AGREES = 1e-3  # of the spread of logits; see `wiring`
SEEN = 1e-6
"""Of the same. What is not read moves nothing, or by rounding alone."""
ORDER_SEEN = 1e-4  # rounding moves sums that are taken in another order


@dataclass(frozen=True)
class OwnCode:
    """The pass that the training makes."""

    forward: Forward  # as the user gave it
    device: torch.device  # where the model is

    def logits(self, checkpoint: Checkpoint, rows: Sequence[Row]) -> Tensor:
        """Logits [B, T, V] of rows, read together; a `CheckpointError` where the code raises an error."""
        fill, reads = checkpoint.config.fill_id, checkpoint.model.anatomy.reads
        sides = ([one.source for one in rows],) if reads else ()
        ids = [padded(side, fill).to(self.device) for side in (*sides, [one.target for one in rows])]
        try:
            with torch.enable_grad(), self.device:
                found = self.forward(*ids)
            found = found.detach().float().cpu()
        except Exception as error:
            problem = shown(f"{type(error).__name__}: {error}".strip().split("\n")[0])
            raise CheckpointError(
                "forward, called with ids of the shapes {shapes}, raised an error: {problem}. It has to take source "
                "ids [batch, source] and what the decoder reads [batch, target], and return logits.",
                shapes=", ".join(str(list(one.shape)) for one in ids),
                problem=problem,
            ) from error
        expected = (*ids[-1].shape, checkpoint.config.tgt_vocab_size)
        if found.shape != expected:
            raise CheckpointError(
                "forward returned a tensor of the shape {found}, expected logits of the shape {expected} (batch, "
                "target, vocabulary).",
                found=str(list(found.shape)),
                expected=str(list(expected)),
            )
        return found

    def difference(self, checkpoint: Checkpoint, rows: Sequence[Row] = ()) -> float:
        """How far its logits are from this program's, in units of their spread, for targets of one token."""
        rows, far = rows or Patient(checkpoint).rows, 0.0
        for one in rows:
            first = Row(one.source, one.target[:1])
            ours = result(checkpoint.model, torch.tensor([first.source]), torch.tensor([first.target]))
            far = max(far, float(moved(ours, self.logits(checkpoint, [first])).max().nan_to_num(torch.inf)))
        return far


def _finite(logits: Tensor) -> Tensor:
    if not bool(logits.isfinite().all()):
        raise _NotFiniteError
    return logits


class _NotFiniteError(Exception):
    """The pass gives NaN or infinite values."""


def _leak(code: OwnCode, patient: Patient) -> Measured:
    """Change later pieces: earlier rows must not move."""
    most, seen = 0.0, 0
    for row, place, far in _changed(code, patient):
        earlier = far[:place]
        most = max(most, float(earlier.max()))
        seen += bool((earlier > SEEN).any())
        patient.pause()
    said = say("When a later piece is replaced, earlier logits change by {most:.3g} of their spread.", most=most)
    return Measured(verdict="broken" if seen else "well", number=most, said=said)


def _past(code: OwnCode, patient: Patient) -> Measured:
    """Change earlier pieces: the last row must move."""
    least = min((float(far[-1]) for row, place, far in _changed(code, patient) if place < len(far) - 1), default=None)
    if least is None:
        raise NotTested("The target texts are too short for this test.")
    said = say(
        "When an earlier piece is replaced, the last logits change by {least:.3g} of their spread.", least=least
    )
    return Measured(verdict="well" if least > SEEN else "broken", number=least, said=said)


def _changed(code: OwnCode, patient: Patient) -> Iterator[tuple[Row, int, Tensor]]:
    """Rows, a place in the target of which the piece is exchanged, and how far the logits of each token move [T]."""
    drawing = Drawing(patient.checkpoint, patient.seed)
    for row in patient.rows:
        before = _finite(code.logits(patient.checkpoint, [row]))[0]
        for place in sorted({1, len(row.target) - 1} & set(range(1, len(row.target)))):
            target = list(row.target)
            target[place] = drawing.another(target[place])
            after = code.logits(patient.checkpoint, [Row(row.source, tuple(target))])
            yield row, place, moved(before, _finite(after)[0])


def _batch(code: OwnCode, patient: Patient) -> Measured:
    """Read rows of several lengths together, and each alone."""
    rows, most = _lengths(patient), 0.0
    together = code.logits(patient.checkpoint, rows)
    for i, row in enumerate(rows):
        patient.pause()
        alone = _finite(code.logits(patient.checkpoint, [row]))[0]
        most = max(most, float(moved(alone, _finite(together[i, : len(alone)])).max()))
    said = say(
        "When a text is read together with longer ones, its logits change by {most:.3g} of their spread.", most=most
    )
    return Measured(verdict="well" if most <= AGREES else "broken", number=most, said=said)


def _lengths(patient: Patient) -> list[Row]:
    """Rows of different lengths; of one, where nothing can fill them up."""
    whole = patient.rows[:3]
    if patient.config.pad_id is None:
        n, m = (min(len(ids) for ids in side) for side in zip(*((r.source, r.target) for r in whole), strict=True))
        return [Row(row.source[:n], row.target[:m]) for row in whole]
    ends = patient.config.source_end
    short = [Row((*row.source[: len(row.source) // 2], *ends), row.target[: len(row.target) // 2]) for row in whole]
    return [one for pair in zip(whole, short, strict=True) for one in pair if one.target]


def _order(code: OwnCode, patient: Patient) -> Measured:
    """Turn the source round: the logits must move."""
    if not patient.anatomy.reads:
        raise NotTested("This model has no encoder: a causal mask alone tells its tokens apart.")
    drawing, most = Drawing(patient.checkpoint, patient.seed), 0.0
    for row in patient.rows:
        patient.pause()
        ids = drawing.source(len(row.source))
        both = [code.logits(patient.checkpoint, [Row(one, row.target)])[0] for one in (ids, ids[::-1])]
        most = max(most, float(moved(*map(_finite, both)).max()))
    said = say("When the source is turned round, logits change by {most:.3g} of their spread.", most=most)
    return Measured(verdict="well" if most > ORDER_SEEN else "broken", number=most, said=said)


def _agrees(code: OwnCode, patient: Patient) -> Measured:
    """Compute the same logits from the same parameters."""
    far = code.difference(patient.checkpoint, patient.rows)
    said = say(
        "For targets of one token, the logits differ from this program's by {far:.3g} of their spread.", far=far
    )
    return Measured(verdict="well" if far <= AGREES else "broken", number=far, said=said)


of_code = partial(Test, "wiring")
_TESTS: tuple[tuple[Test, Callable[[OwnCode, Patient], Measured]], ...] = (
    (
        of_code(
            say("The training's forward pass: no token sees a later one"),
            name="own_leak",
            threshold=SEEN,
            meaning=say(
                "The decoder sees the piece that it has to predict and learns to copy it. The loss falls to nearly 0 "
                "and means nothing, and what the model then writes is worthless."
            ),
            causes=say(
                "The causal mask is missing, inverted or shifted. With PyTorch's own layers, pass "
                "`tgt_mask=nn.Transformer.generate_square_subsequent_mask(T)`, or a Boolean mask that is True above "
                "the diagonal: True means “may not attend”."
            ),
        ),
        _leak,
    ),
    (
        of_code(
            say("The training's forward pass: a token sees those before it"),
            name="own_past",
            threshold=SEEN,
            meaning=say("What was already written has no influence on what is written next."),
            causes=say(
                "The causal mask is the wrong way round: PyTorch's own layers close what is True, other code closes "
                "what is False."
            ),
        ),
        _past,
    ),
    (
        of_code(
            say("The training's forward pass: padding and other sentences change nothing"),
            name="own_batch",
            threshold=AGREES,
            meaning=say("The result for a sentence depends on which other sentences are in the batch."),
            causes=say(
                "A padding mask is missing or inverted (nn.Transformer needs src_key_padding_mask and "
                "memory_key_padding_mask), or the axes of batch and tokens are exchanged (batch_first)."
            ),
        ),
        _batch,
    ),
    (
        of_code(
            say("The training's forward pass: the order of the source matters"),
            name="own_order",
            threshold=ORDER_SEEN,
            meaning=say("The encoder reads every sentence as an unordered bag of pieces: the order is lost."),
            causes=say(
                "Positions are not added to the embeddings, or the result is discarded; or the source does not reach "
                "the decoder."
            ),
        ),
        _order,
    ),
    (
        of_code(
            say("The training's forward pass computes what its parameters say"),
            name="own_agrees",
            threshold=AGREES,
            meaning=say(
                "This program computes other logits from the same parameters. Either it was told something wrong "
                "about the model, or the code has a step that its parameters do not show."
            ),
            causes=say(
                "A table of positions that is not added, embeddings that are scaled or not, a wrong answer to a "
                "question, dropout that eval() does not switch off, or a residual connection or norm that is missing."
            ),
        ),
        _agrees,
    ),
)


def tests_of(code: OwnCode) -> tuple[Test, ...]:
    """The tests of a training's own pass."""
    return tuple(replace(test, look=partial(_looked, look, code)) for test, look in _TESTS)


def _looked(look: Callable[[OwnCode, Patient], Measured], code: OwnCode, patient: Patient) -> Measured:
    if not patient.anatomy.writes:
        raise NotTested("This model does not generate text.")
    try:
        return look(code, patient)
    except _NotFiniteError:
        return Measured(
            verdict="broken",
            said=say("The training's forward pass computes NaN or infinite values."),
            causes=say(
                "The parameters are not finite any more, or a mask closes everything that a token could attend to: "
                "it is the wrong way round."
            ),
        )
