"""Questions about order: how large positions are, and what the model knows without them.

Picks: which pieces of the source a lesson about order moves. Tokens count from 1.

Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.5 for why positions are needed, 3.3 and
3.4 for the feed-forward network at each position and for the factor √d_model.
"""

import re
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from torch import Tensor

from glassformer.extensions.lessons.library.case import (
    Answer,
    Case,
    QuestionNotApplicable,
    above,
    between,
    first_difference,
    largest_difference,
    only_rounding,
    outputs,
    worded,
)
from glassformer.extensions.lessons.library.subjects.looking_questions import own_pieces
from glassformer.extensions.lessons.library.subjects.steps import written
from glassformer.extensions.what_if.interventions import NoPositions, Replace, Shuffle
from transformer.analysis.stream import cosine, rms
from transformer.model.anatomy import anatomy
from transformer.model.taps import Replacer, tap_of
from transformer.runs.interventions import Intervention, write
from transformer.runs.running import replay
from transformer.runs.trace import Trace

MOST_SEEDS: Final = 20


def added_positions(case: Case) -> dict[str, Any]:
    """The stack that reads the sentence, where vectors of positions are added to it."""
    config = case.checkpoint.config
    if config.placing.adds != "table":
        raise QuestionNotApplicable(
            "This model does not add position vectors to its embeddings; choose another checkpoint."
        )
    stack = anatomy(config).stacks[0].name
    return {"stack": stack, "side": "source" if stack == "encoder" else "target"}


def unplaced(case: Case) -> dict[str, Any]:
    """The encoder, which can do without positions."""
    _bag_of_words(case)
    return {"unplaced": str(NoPositions("encoder"))}


def shuffled(case: Case) -> dict[str, Any]:
    """A shuffle of the source that changes it, and the encoder without positions."""
    _bag_of_words(case)
    ids, config = case.trace.src_ids, case.checkpoint.config
    shuffles = (Shuffle(seed) for seed in range(1, MOST_SEEDS + 1))
    found = next((one for one in shuffles if one.edited(ids, config) != ids), None)
    if found is None:
        raise QuestionNotApplicable("The source has no two different tokens to swap; type a longer sentence.")
    both = write((NoPositions("encoder"), found))
    beside = urlencode({"do": both})  # the second run of a comparison, as an address says it
    return {"shuffle": str(found), "unplaced": str(NoPositions("encoder")), "seed": found.seed, "beside": beside}


def twice(case: Case) -> dict[str, Any]:
    """A piece of the source that another place is made to hold, too: the first, and the last that differs from it."""
    _bag_of_words(case)
    ids, own = case.trace.src_ids, own_pieces(case)
    first = own[0]
    other = next((place for place in reversed(own) if ids[place] != ids[first]), None)
    if other is None:
        raise QuestionNotApplicable("The source has no two different tokens; type a longer sentence.")
    return {
        "a": first + 1,
        "b": other + 1,
        "piece": case.trace.src_tokens[first],
        "was": case.trace.src_tokens[other],
        "replace": str(Replace(other, ids[first])),
        "unplaced": str(NoPositions("encoder")),
        "n_layers": anatomy(case.checkpoint.config).stack("encoder").n_layers,
    }


def two_tokens(case: Case) -> dict[str, Any]:
    """Two tokens that a stack reads: its first and its last."""
    trace, stack = case.trace, anatomy(case.checkpoint.config).stacks[0].name
    n = trace.n_tokens(stack)
    if n < 3:
        raise QuestionNotApplicable("This step needs at least three tokens; try a longer sentence.")
    side, pieces = ("source", trace.src_tokens) if stack == "encoder" else ("target", trace.read_tokens)
    return {"stack": stack, "side": side, "a": 1, "b": n, "piece_a": pieces[0], "piece_b": pieces[n - 1]}


def _bag_of_words(case: Case) -> None:
    """An encoder without positions reads a bag of words; a causal mask would still give order."""
    config = case.checkpoint.config
    if not anatomy(config).reads:
        raise QuestionNotApplicable(
            "A decoder-only model also knows the order from its causal mask; choose a checkpoint with an encoder."
        )
    if NoPositions.unfit(config) is not None:
        raise QuestionNotApplicable(
            "This model has no positional encoding that could be removed; choose another checkpoint."
        )


_WORD: Final = re.compile(r"\w+")

NEARLY: Final = 1.25  # sizes that differ by a smaller factor count as about equal
MUCH: Final = 2.0
MOST_STEPS: Final = 12  # two runs are compared for so many steps; of more, nothing else is learned
ROUNDING: Final = 1e-3  # of a vector's numbers, which are around 1


def embedding_and_position(case: Case) -> Answer:
    """How large the embedding is beside the position that is added to it."""
    stack = case.picked["stack"]
    n = case.trace.n_tokens(stack)
    values = replay(case.checkpoint, case.trace, [f"{stack}.embedding.*"])
    tokens, positions = (float(rms(values[f"{stack}.embedding.{name}"][:n]).mean()) for name in ("tokens", "positions"))
    if min(tokens, positions) <= 0:
        raise QuestionNotApplicable(
            "In this model, the embeddings or the position vectors are 0, so there is nothing to compare."
        )
    times = tokens / positions
    words = "position", "equal", "token", "token_much"
    right = between((1 / NEARLY, NEARLY, MUCH), times, words)
    factor = float(case.checkpoint.model.stack(stack).embedding.scale)
    said = {"token": tokens, "position": positions, "times": times, "factor": factor}
    said |= {"raw": tokens / factor, "raw_times": times / factor}
    return Answer(right=right, options=worded(*words), values=said, variant="plain" if factor == 1 else "scaled")


def bag_of_words(case: Case) -> Answer:
    """How far the logits move when the source is shuffled and the encoder has no positions."""
    written(case, least=1)
    unplaced, shuffle = NoPositions("encoder"), Shuffle(int(case.picked["seed"]))
    changes = (unplaced,), (unplaced, shuffle)
    runs = [case.another(interventions=one, max_new=min(MOST_STEPS, case.trace.query.max_new)) for one in changes]
    moved = largest_difference(*runs)
    return Answer(right=moved.verdict, options=worded("rounding", "visible", "shuffled"), values={"moved": moved.by})


def shuffled_source(case: Case) -> Answer:
    """What the output becomes when the source is shuffled and positions are in place."""
    written(case, least=2)
    shuffle = Shuffle(int(case.picked["seed"]))
    other = case.changed(shuffle)
    one, other_first = (np.exp(trace.log_probs[0].astype(np.float64)) for trace in (case.trace, other))
    return _becomes(case.trace, other, moved=float(np.abs(one - other_first).max()))


def unplaced_output(case: Case) -> Answer:
    """What the output becomes when the encoder has no positions."""
    written(case, least=2)
    return _becomes(case.trace, case.changed(NoPositions("encoder")))


def _becomes(before: Trace, after: Trace, *, moved: float = 0.0) -> Answer:
    """Whether an output stays, has its words in another order, or has other words."""
    if before.tgt_ids == after.tgt_ids:
        right = "same"
    else:
        one, other = _words(before), _words(after)
        right = "order" if one != other and sorted(one) == sorted(other) else "other"
    said = {**outputs(before, after), "moved": moved}
    said |= {"shown": first_difference(before, after)[1], "last": max(1, before.n_steps)}
    return Answer(right=right, options=worded("same", "order", "other"), values=said, variant=right)


def _words(run: Trace) -> list[str]:
    """The words of an output in lower case: pieces and capitals do not count. One word alone: its pieces."""
    words = _WORD.findall(run.output_text.casefold())
    return words if len(words) > 1 else [piece.casefold() for piece in run.tgt_tokens]


def same_piece_twice(case: Case) -> Answer:
    """Whether one piece at two places has one vector after the encoder, without positions."""
    a, b = case.at("a"), case.at("b")
    replace = Replace(b, case.trace.src_ids[a])
    without, with_them = _last_vectors(case, NoPositions("encoder"), replace), _last_vectors(case, replace)
    apart = float(np.abs(without[a] - without[b]).max())
    alike = float(cosine(without[a], without[b]))
    right = "equal" if only_rounding(apart, ROUNDING) else ("alike" if above(alike, 0.5) else "different")
    values = {"apart": apart, "cosine": float(cosine(with_them[a], with_them[b]))}
    return Answer(right=right, options=worded("equal", "alike", "different"), values=values)


def _last_vectors(case: Case, *changes: Intervention) -> np.ndarray:
    """The encoder's last vectors under changes, float64 [token, d_model]."""
    trace = case.another(interventions=changes, max_new=1)  # what is written does not matter
    return replay(case.checkpoint, trace, ["encoder.output"])["encoder.output"].astype(np.float64)


def swapped_before_ffn(case: Case) -> Answer:
    """What the feed-forward network of layer 1 makes of two tokens that change places before it."""
    stack, a, b = case.picked["stack"], case.at("a"), case.at("b")
    config = case.checkpoint.config
    attended = "cross_attn" if stack == "decoder" and config.n_encoder_layers else "self_attn"
    reads = f"{stack}.0.{attended}.norm" if config.norm == "post" else f"{stack}.0.ffn.norm"
    output = f"{stack}.0.ffn.output"

    def swap(x: Tensor) -> Tensor:
        changed = x.clone()  # [batch, token, d_model]
        changed[:, a], changed[:, b] = x[:, b], x[:, a]
        return changed

    # Declared causal, to read all tokens in one pass: layer 1 depends on no other layer.
    alone = tap_of(Replacer({reads: swap}, causal=True))
    before = replay(case.checkpoint, case.trace, [output])[output]
    after = replay(case.checkpoint, case.trace, [output], tap=alone)[output]
    expected = before.copy()
    expected[[a, b]] = before[[b, a]]
    n = case.trace.n_tokens(stack)
    apart = float(np.abs(after - expected)[:n].max())
    others = np.delete(np.abs(after - before)[:n].max(axis=1), [a, b])
    moved = float(others.max(initial=0.0))
    right = "swap" if only_rounding(apart, ROUNDING) else ("new" if only_rounding(moved, ROUNDING) else "all")
    return Answer(right=right, options=worded("swap", "new", "all"), values={"apart": apart, "n": n})
