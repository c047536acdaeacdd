"""Computed lesson answers on positions: size, shuffled words, sinusoids, learned tables, shifts, feed-forward.

Picks: which pieces of the source a lesson about order moves; which positions and dimensions a lesson about clocks looks
at. Tokens count from 1; dimensions and the p of a formula count from 0.

Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.5 for why positions are needed and for their
formula, 3.3 and 3.4 for the feed-forward network at each position and for the factor √d_model.
"""

import re
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from torch import Tensor

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    above,
    amount,
    between,
    first_difference,
    largest_difference,
    numbered,
    only_rounding,
    refuse_if,
)
from glassformer.extensions.lessons.library.subjects.looking_questions import own_pieces
from glassformer.extensions.what_if.interventions import NoPositions, Replace, ShiftPositions, Shuffle
from transformer.analysis import positions as study
from transformer.analysis.positions import own_table
from transformer.analysis.stream import cosine, rms
from transformer.i18n import say
from transformer.model.anatomy import anatomy
from transformer.model.taps import Replacer, tap_of
from transformer.runs.interventions import Intervention, write
from transformer.runs.running import replay
from transformer.runs.trace import Trace

MOST_SEEDS: Final = 20


def added_positions(case: Case) -> dict[str, Any]:
    """The stack that reads the sentence, where vectors of positions are added to it."""
    config = case.checkpoint.config
    refuse_if(config.placing.adds != "table", Refusal.NO_TABLE)
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
        raise QuestionNotApplicable(Refusal.TOO_SHORT)
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
        raise QuestionNotApplicable(Refusal.TOO_SHORT)
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
    refuse_if(n < 3, Refusal.TOO_SHORT)
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
    refuse_if(not positions, Refusal.NO_TABLE)
    times = tokens / positions
    words = "position", "equal", "token", "token_much"
    right = between((1 / NEARLY, NEARLY, MUCH), times, words)
    factor = float(case.checkpoint.model.stack(stack).embedding.scale)
    said = {"token": tokens, "position": positions, "times": times, "factor": factor}
    said |= {"raw": tokens / factor, "raw_times": times / factor}
    return Answer(right, said, variant="plain" if factor == 1 else "scaled")


def bag_of_words(case: Case) -> Answer:
    """How far the logits move when the source is shuffled and the encoder has no positions."""
    case.written(least=1)
    unplaced, shuffle = NoPositions("encoder"), Shuffle(int(case.picked["seed"]))
    changes = (unplaced,), (unplaced, shuffle)
    runs = [case.another(interventions=one, max_new=min(MOST_STEPS, case.trace.query.max_new)) for one in changes]
    moved = largest_difference(*runs)
    return Answer(moved.verdict, {"moved": moved.by})


def shuffled_source(case: Case) -> Answer:
    """What the output becomes when the source is shuffled and positions are in place."""
    case.written(least=2)
    shuffle = Shuffle(int(case.picked["seed"]))
    other = case.changed(shuffle)
    one, other_first = (np.exp(trace.log_probs[0].astype(np.float64)) for trace in (case.trace, other))
    return _becomes(case, other, moved=float(np.abs(one - other_first).max()))


def unplaced_output(case: Case) -> Answer:
    """What the output becomes when the encoder has no positions."""
    case.written(least=2)
    return _becomes(case, case.changed(NoPositions("encoder")))


def _becomes(case: Case, after: Trace, *, moved: float = 0.0) -> Answer:
    """Whether an output stays, has its words in another order, or has other words."""
    before = case.trace
    if before.tgt_ids == after.tgt_ids:
        right = "same"
    else:
        one, other = _words(before), _words(after)
        right = "order" if one != other and sorted(one) == sorted(other) else "other"
    said = {**case.outputs(after), "moved": moved}
    said |= {"shown": first_difference(before, after)[1], "last": max(1, before.n_steps)}
    return Answer(right, said)


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
    return Answer(right, {"apart": apart, "cosine": float(cosine(with_them[a], with_them[b]))})


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
    return Answer(right, {"apart": apart, "n": n})


SMALL_TABLE: Final = say("This model's table of positions is too small for this step; choose another checkpoint.")
OTHER_FORMULA: Final = say(
    "This model's position vectors are not the sines and cosines of the original paper; choose the checkpoint zh-en or "
    "en-fr."
)
FOLLOWS: Final = 1e-3  # a table nearer to the paper's formula than this is the formula, rounded
FAST, SLOW, ONE_TURN = 12, 200, 24  # wavelengths, in positions, near which pairs of dimensions are looked for
SHIFT: Final = 5
SMALL_SHIFT: Final = 2
CLOCKS_APART: Final = 3
MOST_POSITIONS: Final = 64


def two_clocks(case: Case) -> dict[str, Any]:
    """A pair of dimensions that turns fast, and one that turns slowly."""
    waves = _waves(case)
    fast, slow = (int(np.abs(np.log(waves / length)).argmin()) for length in (FAST, SLOW))
    refuse_if(fast == slow, SMALL_TABLE)
    return {"fast": fast, "slow": slow, "dims": f"{2 * fast + 1}.{2 * slow + 1}", "d": table_of(case).shape[1]}


def one_clock(case: Case) -> dict[str, Any]:
    """A pair of dimensions that turns once in a few words, and by how much from one position to the next."""
    pair = int(np.abs(np.log(_waves(case) / ONE_TURN)).argmin())
    return {
        "sine": 2 * pair,
        "cosine": 2 * pair + 1,
        "radians": angle_of(table_of(case), pair),
        "dims": f"{2 * pair + 1}.{2 * pair + 2}",
    }


def two_pairs(case: Case) -> dict[str, Any]:
    """Two pairs of positions that are equally far apart, one at the beginning of the table, one further back."""
    n = min(len(table_of(case)), MOST_POSITIONS)
    second = n - 2 * CLOCKS_APART
    refuse_if(second <= 1 + CLOCKS_APART, SMALL_TABLE)
    return {"p": 1, "q": 1 + CLOCKS_APART, "p2": second, "q2": second + CLOCKS_APART}


def shift(case: Case) -> dict[str, Any]:
    """A shift by a few positions, and a pair of dimensions that turns once in the table: its points lie apart."""
    table = table_of(case)
    refuse_if(len(table) < SHIFT + 3, SMALL_TABLE)
    pair = int(np.abs(np.log(study.wavelengths(table.shape[1]) / MOST_POSITIONS)).argmin())
    return {"k": SHIFT, "dims": f"{2 * pair + 1}.{2 * pair + 2}"}


def small_shift(case: Case) -> dict[str, Any]:
    """All tokens stand a few positions further on."""
    table_of(case)
    return {"k": SMALL_SHIFT, "change": str(ShiftPositions(by=SMALL_SHIFT)), "last": case.written(least=1)}


def lengths(case: Case) -> dict[str, Any]:
    """How long the vectors of positions are."""
    table = table_of(case)
    found = np.linalg.norm(table.astype(np.float64), axis=1)
    return {"least": float(found.min()), "most": float(found.max()), "n": len(table), "d": table.shape[1]}


def table_of(case: Case) -> np.ndarray:
    """The table of positions of the stack that reads the sentence, [position, d_model]."""
    config = case.checkpoint.config
    refuse_if(config.placing.adds != "table", Refusal.NO_TABLE)
    return own_table(case.checkpoint.model, anatomy(config).stacks[0].name)


def angle_of(table: np.ndarray, pair: int) -> float:
    """By how many radians a pair of dimensions, from 0, turns from each position of a table to the next."""
    angles = np.unwrap(np.arctan2(table[:, 2 * pair].astype(np.float64), table[:, 2 * pair + 1]))
    return float(abs(angles[-1] - angles[0]) / (len(table) - 1))


def _waves(case: Case) -> np.ndarray:
    """Wavelengths by pair, of a table that is the formula."""
    table = table_of(case)
    refuse_if(study.difference_from_formula(table) >= FOLLOWS, OTHER_FORMULA)
    return study.wavelengths(table.shape[1])[: table.shape[1] // 2]


MEASURED: Final = 512


def faster_dimension(case: Case) -> Answer:
    """Which of two pairs of dimensions turns faster."""
    fast, slow, table = int(case.picked["fast"]), int(case.picked["slow"]), table_of(case)
    turns = {word: 2 * np.pi / angle_of(table, pair) for word, pair in (("fast", fast), ("slow", slow))}
    options = (Option("fast", _pair(fast)), Option("slow", _pair(slow)), Option("same"))
    right = min(turns, key=lambda word: turns[word])
    return Answer(right, {f"turn_{word}": float(turns[word]) for word in turns}, options=options)


def _pair(pair: int) -> str:
    return say("pair {n}: dimensions {sine} and {cosine}", n=pair, sine=2 * pair, cosine=2 * pair + 1)


def turn_length(case: Case) -> Answer:
    """After how many positions a pair of dimensions has turned once."""
    sine, table = int(case.picked["sine"]), table_of(case)
    turn = 2 * np.pi / angle_of(table, sine // 2)
    numbers = {"turn": turn, "half": turn / 2, "radian": turn / (2 * np.pi), "width": float(table.shape[1])}
    return Answer("turn", {"turn": float(turn)}, options=numbered(numbers, ",.0f"))


def same_distance(case: Case) -> Answer:
    """Which of two pairs of positions, equally far apart, is more alike by the dot product."""
    p, q, p2, q2 = (int(case.picked[name]) for name in ("p", "q", "p2", "q2"))
    similar = study.similarity(table_of(case)[:MOST_POSITIONS])
    first, second = float(similar[p, q]), float(similar[p2, q2])
    spread = study.by_distance(similar).spread
    near = only_rounding(abs(first - second) / float(np.abs(similar).max()))
    right = "same" if near else ("first" if first > second else "second")
    values = {"first": first, "second": second, "spread": amount(spread), "d": q - p}
    variant = "distance" if near else "places"
    return Answer(right, values, variant=variant)


def shift_map(case: Case) -> Answer:
    """What makes of every position's vector the one some positions further on."""
    k, table = int(case.picked["k"]), table_of(case)[:MEASURED]
    missed = float(study.rotation_errors(table, k).max())
    fit = study.fit_shift(table, k)
    right = "one" if only_rounding(missed, FOLLOWS) else "none"
    refuse_if(right == "none" and fit.held_out_error < 0.1, OTHER_FORMULA)
    return Answer(right, {"missed": amount(missed), "held_out": fit.held_out_error})


def where_from(case: Case) -> Answer:
    """Whether a table of positions was computed or learned."""
    learned, table = bool(case.checkpoint.config.placing.parameters), table_of(case)
    refuse_if(not learned and study.difference_from_formula(table) >= FOLLOWS, OTHER_FORMULA)
    right = "learned" if learned else "formula"
    return Answer(right, {"size": table.size, "root": float(np.sqrt(table.shape[1] / 2))})


def shifted_output(case: Case) -> Answer:
    """Whether the output stays the same when all tokens stand some positions further on."""
    k, longest = int(case.picked["k"]), max(len(case.trace.src_ids), len(case.trace.read_ids))
    refuse_if(longest + k > len(table_of(case)), Refusal.TOO_LONG)  # behind the last row comes the first again
    other = case.changed(ShiftPositions(by=k))
    right = "same" if other.tgt_ids == case.trace.tgt_ids else "other"
    moved = amount(abs(other.log_prob - case.trace.log_prob))
    return Answer(right, {**case.outputs(other), "moved": moved, "end": other.n_steps})


def longest_word(case: Case) -> Answer:
    """How many pieces a source may have where positions are a table with so many rows."""
    rows, trace = len(table_of(case)), case.trace
    tokenizer = case.checkpoint.src_tokenizer
    marks = sum(tokenizer.is_special(i) for i in trace.src_ids)
    if not case.checkpoint.config.placing.parameters or not marks:
        raise QuestionNotApplicable("This step needs a learned table of positions and a source with an end mark.")
    numbers = {"half": rows // 2, "pieces": rows - marks, "rows": rows}
    options = tuple(Option(word, f"{n:,}") for word, n in numbers.items())
    return Answer("pieces", {"k": rows - marks, "next": rows}, options=(*options, Option("any")))
