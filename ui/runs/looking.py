"""What the Step page shows of a trace, as labels and arrays; every rule about rows and hiding is here.

A decoder row reads one piece and predicts the next, and every label says both; a decoder alone reads its prompt in
the first rows. In guess mode nothing that comes after the current step may be seen, and the current piece only once
it was revealed.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transformer.runs.query import Greedy, Query, Sampling
from transformer.runs.trace import Kind, Trace
from transformer.text.tokenizer import SPACE_MARK, Tokenizer
from ui.state.view import MAIN, Slot, View
from words import Sentence, joined, say

N_CANDIDATES = 10
HIDDEN = "?"


@dataclass(frozen=True)
class Looking:
    """A trace, what of it is looked at, and what must stay hidden.

    Attributes:
        trace: The run.
        view: What is looked at; its step, layer and head exist in the trace.
        revealed: In guess mode, whether the current piece may be seen.
        slot: Where it is drawn.
    """

    trace: Trace
    view: View
    revealed: bool = True
    slot: Slot = MAIN

    @property
    def covered(self) -> bool:
        """Whether the current piece is hidden."""
        return self.view.guess and not self.revealed and self.trace.n_steps > 0

    @property
    def n_steps(self) -> int:
        """Steps that may be seen."""
        return min(self.view.step + 1, self.trace.n_steps) if self.view.guess else self.trace.n_steps

    @property
    def n_rows(self) -> int:
        """Decoder rows that may be seen; a prompt's rows come before those of the steps."""
        return self.trace.first_row + self.n_steps

    @property
    def row(self) -> int:
        """The decoder's row of the current step."""
        return self.trace.row_of(self.view.step)

    @property
    def kind(self) -> Kind:
        """The attention by which a step looks at the source: cross-attention, or the only one that there is."""
        return self.trace.kinds[-1]

    def row_labels(self) -> list[str]:
        """What each visible decoder row reads and predicts."""
        return row_labels(self.trace, self.n_rows, covered=self.covered)

    def weights(self) -> np.ndarray:
        """That attention's weights in the chosen layer and head, or a mean: all rows [query, key]."""
        maps = self.trace.maps(self.kind)  # [layer, head, query, key]
        if self.view.layer is None:
            return maps.mean(axis=(0, 1))
        layer = maps[self.view.layer]
        return layer.mean(axis=0) if self.view.head is None else layer[self.view.head]

    def whose(self) -> Sentence:
        """Which layer and head that is; a mean says that it is one."""
        return heads_name(self.trace, self.view, self.kind)


def row_labels(trace: Trace, n_rows: int, *, covered: bool) -> list[str]:
    """What the first decoder rows read and predict; what the last of them predicts may be covered."""
    labels = [str(label) for label in trace.row_labels()[:n_rows]]
    if covered:
        labels[-1] = f"{trace.row_label(n_rows - 1).reads} → {HIDDEN}"
    return labels


def heads_name(trace: Trace, view: View, kind: Kind) -> Sentence:
    """Which layer and head a map is of; a mean says that it is one."""
    n_layers, n_heads = trace.maps(kind).shape[:2]
    if view.layer is None:
        return say("mean of all {n_layers} layers × {n_heads} heads", n_layers=n_layers, n_heads=n_heads)
    if view.head is None:
        return say("layer {layer}, mean of its {n_heads} heads", layer=view.layer + 1, n_heads=n_heads)
    return say("layer {layer}, head {head}", layer=view.layer + 1, head=view.head + 1)


def fit_view(view: View, trace: Trace, *, kind: Kind = "cross") -> tuple[View, tuple[str, ...]]:
    """Move step, layer and head into what a trace has.

    Args:
        view: What was asked for.
        trace: The run.
        kind: The attention that layer and head are of; the last one if the model does not have it.

    Returns:
        The view, and a note for each value that had to be moved.
    """
    n_layers, n_heads = trace.maps(kind if kind in trace.kinds else trace.kinds[-1]).shape[:2]
    notes: list[str] = []
    step, layer, head = view.step, view.layer, view.head
    if step >= max(trace.n_steps, 1):
        notes.append(_no_step(step, trace.n_steps))
        step = max(trace.n_steps - 1, 0)
    if layer is not None and layer >= n_layers:
        notes.append(no_layer(layer, n_layers))
        layer, head = None, None
    if head is not None and head >= n_heads:
        notes.append(no_head(head, n_heads))
        head = None
    if layer is None:
        head = None  # a head of all layers together is nothing
    return replace(view, step=step, layer=layer, head=head), tuple(notes)


def no_layer(layer: int, count: int) -> str:
    """What is said of a layer that there is not, counted from 0."""
    return say(
        "Layer {layer} was asked for; this model has {count}. The mean is shown.", layer=layer + 1, count=count
    )


def no_head(head: int, count: int) -> str:
    """What is said of a head that there is not, counted from 0."""
    return say("Head {head} was asked for; this model has {count}. The mean is shown.", head=head + 1, count=count)


def _no_step(step: int, count: int) -> str:
    if not count:
        return say("Step {step} was asked for; this model writes nothing, so there are no steps.", step=step + 1)
    return say(
        "Step {step} was asked for; this output has {count}. The last one is shown.", step=step + 1, count=count
    )


@dataclass(frozen=True)
class CandidateList:
    """The candidates of a step as parallel lists, for the chart."""

    pieces: list[str]
    probabilities: list[float]
    ids: list[int]
    ranks: list[int]
    kept: list[bool] | None
    chosen: int | None
    how_chosen: str


def candidate_list(looking: Looking) -> CandidateList:
    """The most probable pieces of the current step, the chosen one among them."""
    step = looking.trace.step(looking.view.step, top_k=N_CANDIDATES)
    listed = step.candidates
    ranks = list(range(1, len(listed) + 1))
    if len(listed) > N_CANDIDATES:
        ranks[-1] = step.rank
    sampled = isinstance(looking.trace.query.decoding, Sampling)
    yours = is_yours(looking.trace, looking.view.step)
    how = say("forced by you") if yours else say("drawn at random") if sampled else say("chosen")
    return CandidateList(
        pieces=[c.piece for c in listed],
        probabilities=[c.probability for c in listed],
        ids=[c.id for c in listed],
        ranks=ranks,
        kept=[bool(c.sampling_probability) for c in listed] if sampled else None,
        chosen=next(i for i, c in enumerate(listed) if c.chosen),
        how_chosen=how,
    )


def is_yours(trace: Trace, step: int) -> bool:
    """Whether a piece is one that the reader chose.

    What leads up to that piece is forced too, but it is what the model had written before.
    """
    n_forced = len(trace.query.forced)
    if step >= n_forced - 1:
        return step == n_forced - 1
    greedy = isinstance(trace.query.decoding, Greedy)
    return greedy and int(trace.log_probs[step].argmax()) != trace.tgt_ids[step]


def branch_at(written: tuple[int, ...], step: int, piece_id: int) -> tuple[int, ...]:
    """The forced beginning that makes `piece_id` piece `step` of an output."""
    return (*written[:step], piece_id)


def own_choice(query: Query) -> Query:
    """The same query with nothing forced."""
    return replace(query, forced=(), hypothesis=0)


def find_piece(text: str, tokenizer: Tokenizer, log_probs: np.ndarray) -> int | None:
    """The id of the piece that a person means by a text: as typed, or as the beginning of a word.

    Where both are pieces it is the likelier one at this step: after "l'" it is "homme", elsewhere "▁homme".

    Args:
        text: As typed.
        tokenizer: Of the output.
        log_probs: `[vocab]`, of the step.
    """
    text = text.encode("utf-8", "replace").decode("utf-8").strip()
    found = [tokenizer.id_of(piece) for piece in (SPACE_MARK + text, text) if text]
    return max((i for i in found if i is not None), key=lambda i: float(log_probs[i]), default=None)


def no_piece(text: str) -> str:
    """What is said of a text that is not one piece."""
    return say("“{text}” is not one piece of this model's vocabulary.", text=text)


def judge(guess: str, looking: Looking, tokenizer: Tokenizer) -> str:
    """One sentence on a guess of the current piece."""
    trace, step = looking.trace, looking.view.step
    i = find_piece(guess, tokenizer, trace.log_probs[step])
    if i is None:
        return no_piece(guess.strip())
    found = say(
        "The model gave “{piece}” a probability of {probability:.3f}: place {rank:,}.",
        piece=trace.vocabulary[i],
        probability=np.exp(trace.log_probs[step, i]),
        rank=trace.rank_of(i, step=step),
    )
    right = i == trace.tgt_ids[step]
    return joined(" ", [say("Right.") if right else say("The output has another piece."), found])
