"""Questions about decoding: what is read, how sure the model is, what a choice leads to."""

import math
from typing import Final

import numpy as np

from glassformer.extensions.lessons.library.case import (
    NEAR,
    Answer,
    Case,
    NotHere,
    Option,
    above,
    numbered,
    only_rounding,
    outputs,
    worded,
)
from glassformer.extensions.lessons.library.subjects.steps import written
from transformer.runs.query import Beam
from transformer.text.tokenizer import SPACE_MARK

CLEAR_BITS: Final = 0.2  # by how much the least sure step has to stand out to be asked for
SAME_NATS: Final = 1e-4  # log-probabilities that are nearer than this are the same, up to rounding
ROUNDS_TO_ALL: Final = 0.995  # a share from here on reads 100 %, which no softmax gives
N_BACK_AND_FORTH: Final = 10
MOST_CHOICES: Final = 4


def read_piece(case: Case) -> Answer:
    """What the decoder reads before it has written anything."""
    trace, is_special = case.trace, case.checkpoint.src_tokenizer.is_special
    written(case, least=1)
    if trace.first_row:
        raise NotHere("A decoder-only model reads the prompt first and has no start mark of its own.")
    start = trace.read_pieces[0]
    pieces = [piece for i, piece in zip(trace.src_ids, trace.src_pieces, strict=True) if not is_special(i)]
    pieces = [piece for piece in pieces if piece != SPACE_MARK] or pieces  # by itself nobody can read it
    if not pieces:
        raise NotHere(
            "The source has only special pieces, so the start mark would be the only choice; type a sentence."
        )
    options = [Option("start", start), Option("first", pieces[0])]
    if pieces[-1] != pieces[0]:
        options.append(Option("last", pieces[-1]))
    return Answer(right="start", options=(*options, Option("nothing")), values={"start": start})


def rank_of_guess(case: Case) -> Answer:
    """Which place the learner's guess has among all pieces at the first step."""
    written(case, least=1)
    step, tokenizer = case.trace.step(0), case.checkpoint.tgt_tokenizer
    best = step.candidates[0]
    values = {"piece": best.piece, "p": best.probability, "n": len(case.trace.vocabulary)}
    ids = [i for i in tokenizer.encode(case.given).ids if not tokenizer.is_special(i)] if case.given.strip() else []
    right = tokenizer.decode((best.id,)).strip() or best.piece
    if not ids:
        values |= {"rank": 0, "guess": ""}
        return Answer(right=right, values=values, variant="unknown", accepted=(best.piece,))
    rank = case.trace.rank_of(ids[0], step=0)
    values |= {"rank": rank, "guess": tokenizer.piece(ids[0])}
    accepted = (best.piece, case.given.strip()) if ids[0] == best.id else (best.piece,)
    return Answer(right=right, values=values, variant="first" if rank == 1 else "later", accepted=accepted)


def hardest_step(case: Case) -> Answer:
    """At which step the model was least sure, if one stands out."""
    trace = case.trace
    written(case, least=4)
    entropies = trace.entropies()
    order = np.argsort(-entropies, kind="stable")
    hardest, easiest = int(order[0]), int(order[-1])
    spread = float(entropies[hardest] - entropies[easiest])
    surest = trace.step(easiest).candidates[0].probability
    values = {
        "piece": trace.tgt_pieces[hardest],
        "h": float(entropies[hardest]),
        "as_if": 2 ** float(entropies[hardest]),
        "easy": trace.tgt_pieces[easiest],
        "h2": float(entropies[easiest]),
        "p2": surest,
        "d": spread,
    }
    below = [int(one) for one in order if entropies[one] <= entropies[hardest] - CLEAR_BITS]
    others = below[:: max(1, len(below) // (MOST_CHOICES - 1))][: MOST_CHOICES - 1]
    if entropies[order[0]] - entropies[order[1]] >= CLEAR_BITS and others:
        chosen = [hardest, *others]
        right = f"step-{hardest + 1}"
    elif not above(spread, CLEAR_BITS):
        chosen = [int(one) for one in order[: MOST_CHOICES - 1]]
        right = "equal"
    else:
        raise NotHere("Two steps are about equally hard here, so there is no single answer; try another sentence.")
    options = [Option(f"step-{one + 1}", f"{one + 1} · {trace.tgt_pieces[one]}") for one in sorted(chosen)]
    smoothed = bool(case.checkpoint.card.label_smoothing())
    clear = "clear_sure" if surest >= ROUNDS_TO_ALL else "clear"
    variant = clear if right != "equal" else ("equal_smoothed" if smoothed else "equal")
    return Answer(right=right, options=(*options, Option("equal")), values=values, variant=variant)


def branch(case: Case) -> Answer:
    """What becomes of the rest if the second-best piece is forced at the step that was picked."""
    trace, at = case.trace, case.at("step")
    forced = (*trace.tgt_ids[:at], int(case.picked["alt_id"]))
    other = case.another(forced=forced)
    before, after = trace.tgt_ids[at + 1 :], other.tgt_ids[at + 1 :]
    differ = sum(a != b for a, b in zip(before, after, strict=False)) + abs(len(before) - len(after))
    values = {"alt": case.picked["alt"], "n": differ, **outputs(trace, other), "forced": ".".join(map(str, forced))}
    ends = case.checkpoint.config.end_ids
    if len(after) <= 1 and (not after or after[0] in ends) and len(before) > 1:
        right = "ended"
    else:
        right = "changed" if differ else "same"
    return Answer(right=right, options=worded("same", "changed", "ended"), values=values, variant=right)


def passes(case: Case) -> Answer:
    """How often the model has to run for steps back and forth: for each step that the finished pass does not hold."""
    n_steps, trace = written(case, least=2), case.trace
    visited = range(max(0, n_steps - N_BACK_AND_FORTH), n_steps)
    # Whether a pass over the whole output says of a step what one that ends there says.
    ends = ((step, case.another(max_new=step + 1)) for step in visited)
    again = sum(not only_rounding(float(np.abs(trace.log_probs[at] - one.log_probs[at]).max())) for at, one in ends)
    options = numbered({str(n): n for n in (again, 0, 1, N_BACK_AND_FORTH, N_BACK_AND_FORTH * n_steps)})
    return Answer(right=str(again), options=options, values={"k": again, "n": n_steps})


def beam_against_greedy(case: Case) -> Answer:
    """Whether five beams find a more probable output than taking the most probable piece each time."""
    written(case, least=1)
    beam = case.another(decoding=Beam(size=5, length_penalty=0.0))
    ours, theirs = case.trace.log_prob, beam.log_prob
    same = beam.tgt_ids == case.trace.tgt_ids
    if not same and math.isclose(ours, theirs, abs_tol=SAME_NATS):
        raise NotHere(NEAR)
    right = "same" if same else ("more" if theirs > ours else "less")
    apart = next((i for i, (a, b) in enumerate(zip(case.trace.tgt_ids, beam.tgt_ids, strict=False)) if a != b), 0)
    piece = case.trace.tgt_pieces[apart] if case.trace.n_steps else ""
    values = {"b": theirs, "g": ours, "piece": piece, "at": apart + 1}
    return Answer(right=right, options=worded("more", "same", "less"), values=values, variant=right)
