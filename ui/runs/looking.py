"""What the Step page shows of a trace, as labels and arrays; every rule about rows and hiding is here.

Decoder row t reads target piece t - 1 and predicts piece t, and every label says both. In guess mode nothing that
comes after the current step may be seen, and the current piece only once it was revealed.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transformer.runs.query import Greedy, Query, Sampling
from transformer.runs.trace import Kind, Trace
from transformer.text.tokenizer import SPACE_MARK, Tokenizer
from ui.state.view import MAIN, Slot, View

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
        return self.view.guess and not self.revealed

    @property
    def n_rows(self) -> int:
        """Decoder rows that may be seen."""
        return self.view.step + 1 if self.view.guess else self.trace.n_steps

    def row_labels(self) -> list[str]:
        """What each visible decoder row reads and predicts."""
        labels = [f"{label.reads} → {label.predicts}" for label in self.trace.row_labels()[: self.n_rows]]
        if self.covered:
            labels[-1] = f"{self.trace.row_label(self.view.step).reads} → {HIDDEN}"
        return labels

    def cross_weights(self) -> np.ndarray:
        """Cross-attention of the chosen layer and head, or a mean: all rows [step, source]."""
        maps = self.trace.cross  # [layer, head, query, key]
        if self.view.layer is None:
            return maps.mean(axis=(0, 1))
        layer = maps[self.view.layer]
        return layer.mean(axis=0) if self.view.head is None else layer[self.view.head]

    def cross_label(self) -> str:
        """Which layer and head that is; a mean says that it is one."""
        n_layers, n_heads = self.trace.cross.shape[:2]
        if self.view.layer is None:
            return f"mean of all {n_layers} layers × {n_heads} heads"
        if self.view.head is None:
            return f"layer {self.view.layer + 1}, mean of its {n_heads} heads"
        return f"layer {self.view.layer + 1}, head {self.view.head + 1}"


def fit_view(view: View, trace: Trace, *, kind: Kind = "cross") -> tuple[View, tuple[str, ...]]:
    """Move step, layer and head into what a trace has.

    Args:
        view: What was asked for.
        trace: The run.
        kind: The attention that layer and head are of.

    Returns:
        The view, and a note for each value that had to be moved.
    """
    n_layers, n_heads = trace.maps(kind).shape[:2]
    notes = []
    step, layer, head = view.step, view.layer, view.head
    if step >= trace.n_steps:
        notes.append(f"Step {step + 1} was asked for; this output has {trace.n_steps}. The last one is shown.")
        step = trace.n_steps - 1
    if layer is not None and layer >= n_layers:
        notes.append(f"Layer {layer + 1} was asked for; this model has {n_layers}. The mean is shown.")
        layer, head = None, None
    if head is not None and head >= n_heads:
        notes.append(f"Head {head + 1} was asked for; this model has {n_heads}. The mean is shown.")
        head = None
    if layer is None:
        head = None  # a head of all layers together is nothing
    return replace(view, step=step, layer=layer, head=head), tuple(notes)


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
    how = "forced by you" if yours else "drawn at random" if sampled else "chosen"
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
    return Query(checkpoint=query.checkpoint, source=query.source, decoding=query.decoding, max_new=query.max_new)


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


def judge(guess: str, looking: Looking, tokenizer: Tokenizer) -> str:
    """One sentence on a guess of the current piece."""
    trace, step = looking.trace, looking.view.step
    i = find_piece(guess, tokenizer, trace.log_probs[step])
    if i is None:
        return f"“{guess.strip()}” is not one piece of this model's vocabulary."
    probability, rank = np.exp(trace.log_probs[step, i]), trace.rank_of(i, step=step)
    said = f"The model gave “{trace.vocabulary[i]}” a probability of {probability:.3f}: place {rank:,}."
    return f"Right. {said}" if i == trace.tgt_ids[step] else f"The output has another piece. {said}"
