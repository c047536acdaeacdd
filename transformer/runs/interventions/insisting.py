"""A piece of the output is insisted on: it is written at one step, whatever the model finds probable.

All other steps are chosen as ever, on what is then written. Decoding closes every other piece at that step, as the
rules of a model's config do, so that greedy decoding, beam search and sampling all write it.

Source: Hokamp and Liu, "Lexically Constrained Decoding for Sequence Generation Using Grid Beam Search" (2017), for
pieces that an output must have; here at a place that is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from transformer.model.anatomy import anatomy
from transformer.model.config import MAX_LENGTH, MAX_VOCAB, ModelConfig
from transformer.runs.interventions.base import ChangeError, Group, Intervention
from transformer.runs.interventions.spelling import place, whole
from words import Sentence, say


@dataclass(frozen=True)
class Insist(Intervention):
    """One step writes a piece that is named. If the output ends before it, nothing is insisted on."""

    step: int = place(say("Step"), MAX_LENGTH, what="step")  # which, from 0
    piece: int = whole(say("Piece that is written there"), 0, MAX_VOCAB - 1, what="target_piece")  # the piece's id

    word: ClassVar[str] = "insist"
    group: ClassVar[Group] = "pieces"
    title: ClassVar[Sentence] = say("A piece of the output is insisted on")
    about: ClassVar[Sentence] = say(
        "It is written at that step, and the others are chosen freely; an output that ends before it stays as it is. "
        "Hokamp and Liu (2017)."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """What writes nothing has no steps."""
        if anatomy(config).writes:
            return None
        return say("This model is an encoder alone: it writes nothing, so that nothing can be insisted on.")

    def check(self, config: ModelConfig) -> None:
        """See whether there is such a piece, and whether it may be written."""
        super().check(config)
        if self.piece >= config.tgt_vocab_size:
            raise ChangeError(
                "{change} names piece {piece}; the output's pieces have the ids 0 to {last:,}.",
                change=str(self),
                piece=self.piece,
                last=config.tgt_vocab_size - 1,
            )
        if self.piece in config.never_written:
            raise ChangeError(
                "{change} names a piece that is never written: it is padding, or banned by the model's config. "
                "Choose another piece.",
                change=str(self),
            )

    def told(self) -> str:
        """In words."""
        return say("Output, step {step}: piece {piece} is written", step=self.step + 1, piece=self.piece)


def insisted(changes: Sequence[Intervention], forced: tuple[int, ...], most: int) -> dict[int, int]:
    """The pieces that are insisted on, by their steps from 0.

    Args:
        changes: All that is changed.
        forced: What the query forces the output to begin with.
        most: Most pieces that can be written.

    Raises:
        ChangeError: A step cannot be reached, or the query forces another piece there.
    """
    found: dict[int, int] = {}
    for one in changes:
        if not isinstance(one, Insist):
            continue
        if one.step >= most:
            raise ChangeError(
                "{change} names step {step}; this run writes at most {most}. Choose an earlier one, or let it write "
                "more pieces.",
                change=str(one),
                step=one.step + 1,
                most=most,
            )
        if one.step < len(forced) and forced[one.step] != one.piece:
            raise ChangeError(
                "{change} contradicts the forced beginning of the output, which has piece {piece} at that step. "
                "Leave one of them out.",
                change=str(one),
                piece=forced[one.step],
            )
        found[one.step] = one.piece
    return found
