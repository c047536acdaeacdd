"""Computed lesson answers on cross-attention (strongest source token, end mark, ablation) and on tokenization.

Picks: which step a lesson looks at, and which cross-attention: a head and a source token. All count from 1.
"""

from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    between,
    clear,
    counted,
    first_difference,
    largest,
    refuse_if,
)
from glassformer.extensions.what_if.interventions import Mute
from transformer.analysis.one_weight import hardest_step as least_sure
from transformer.i18n import say
from transformer.model.anatomy import anatomy
from transformer.text.tokenizer import SPACE_MARK


def first_step(case: Case) -> dict[str, Any]:
    """The first one."""
    case.written(least=1)
    return {"step": 1}


def last_step(case: Case) -> dict[str, Any]:
    """The last one."""
    return {"step": case.written(least=1)}


def hardest_step(case: Case) -> dict[str, Any]:
    """The one at which the model was least sure (entropy), and what it wrote there."""
    n_steps = case.written(least=2)
    at = least_sure(case.trace.entropies(), range(n_steps))
    second = next(one for one in case.trace.step(at).candidates if not one.chosen and one.rule is None)
    return {"step": at + 1, "piece": case.trace.tgt_tokens[at], "alt": second.piece, "alt_id": second.id}


def cached_step(case: Case) -> dict[str, Any]:
    """A step in the middle of the output, what it reads, and how much is read and written in all."""
    n_steps, trace = case.written(least=4), case.trace
    at = n_steps // 2
    read = trace.row_label(trace.row_of(at)).reads
    return {"step": at + 1, "read": read, "n": n_steps, "s": len(trace.src_ids), "kind": "decoder"}


def copying_first(case: Case) -> dict[str, Any]:
    """The first step, in the head of the cross-attention that is surest where to look."""
    return _at_step(case, 1)


def copying_second(case: Case) -> dict[str, Any]:
    """The same head at the second step."""
    return _at_step(case, 2)


def looked_at(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure, and the piece of the text that it weighs most there."""
    weights = cross_maps(case)
    at = least_sure(case.trace.entropies(), range(case.written(least=2)))
    own = own_pieces(case)
    row = weights.mean(axis=(0, 1))[at]  # [key]
    key = own[largest(row[list(own)])]
    return {
        "step": at + 1,
        "piece": case.trace.tgt_tokens[at],
        "key": key + 1,
        "looked": case.trace.src_tokens[key],
        "n_heads": weights.shape[0] * weights.shape[1],
    }


def cross_maps(case: Case) -> np.ndarray:
    """The weights of the cross-attention, [layer, head, step, key], without a batch's padding."""
    trace = case.trace
    refuse_if("cross" not in anatomy(case.checkpoint.config).kinds, Refusal.NEEDS_BOTH)
    refuse_if(not trace.keeps_maps, Refusal.TOO_LONG)
    return trace.maps("cross")[:, :, : trace.n_steps, : trace.n_tokens("encoder")]


def own_pieces(case: Case) -> tuple[int, ...]:
    """The places of the source that hold text, from 0."""
    trace, tokenizer = case.trace, case.checkpoint.src_tokenizer
    places = range(trace.n_tokens("encoder"))
    own = tuple(place for place in places if not tokenizer.is_special(trace.src_ids[place]))
    refuse_if(not own, Refusal.ONLY_SPECIAL)
    return own


def _at_step(case: Case, step: int) -> dict[str, Any]:
    case.written(least=step)
    weights = cross_maps(case)
    sure = weights.max(axis=-1).mean(axis=-1)  # [layer, head]
    layer, head = np.unravel_index(largest(sure), sure.shape)
    return {"step": step, "layer": int(layer) + 1, "head": int(head) + 1, "piece": case.trace.tgt_tokens[step - 1]}


NOT_IN_VOCABULARY: Final = say(
    "This vocabulary does not have the token that this step asks about; try another sentence."
)
CLEAR: Final = 0.05  # by how much the largest weight has to stand out to be asked for
FAIR: Final = 1.5  # a share counts as that of an even spread up to so many times more or less
MOST_CHOICES: Final = 4


def strongest_in_head(case: Case) -> Answer:
    """Which source token one head weighs most at a step."""
    layer, head, step = (int(case.picked[name]) - 1 for name in ("layer", "head", "step"))
    return _strongest(case, cross_maps(case)[layer, head, step])


def strongest_in_mean(case: Case) -> Answer:
    """Which source token all heads together weigh most at a step."""
    return _strongest(case, cross_maps(case)[:, :, case.at("step")].mean(axis=(0, 1)))


def _strongest(case: Case, row: np.ndarray) -> Answer:
    """The key with the largest weight of a row [key], if one stands out."""
    trace, own = case.trace, own_pieces(case)
    order = [int(key) for key in np.argsort(-row, kind="stable")]
    refuse_if(len(order) < 3, Refusal.TOO_SHORT)
    refuse_if(row[order[0]] - row[order[1]] < CLEAR, Refusal.NO_WINNER)
    step = case.at("step")
    roles = _roles(own, step, len(row))
    chosen = list(dict.fromkeys([order[0], *roles, *order[1:]]))[:MOST_CHOICES]
    words = {key: roles.get(key, f"key-{key + 1}") for key in chosen}
    options = tuple(Option(words[key], f"{key + 1} · {trace.src_tokens[key]}") for key in sorted(chosen))
    values = {
        "key": order[0] + 1,
        "key_piece": trace.src_tokens[order[0]],
        "w": float(row[order[0]]),
        "second": trace.src_tokens[order[1]],
        "w2": float(row[order[1]]),
    }
    if order[0] not in own:
        variant = "special"
    else:
        variant = "copied" if trace.src_tokens[order[0]] == trace.tgt_tokens[step] else "piece"
    return Answer(words[order[0]], values, options=options, variant=variant)


def _roles(own: tuple[int, ...], step: int, n_keys: int) -> dict[int, str]:
    """Source tokens that somebody may expect at a step: that of the same place from either end, and the end mark."""
    roles = {} if n_keys - 1 in own else {n_keys - 1: "end"}
    if step < len(own):
        roles |= {own[step]: "same", own[-1 - step]: "mirror"}
    return {key: roles[key] for key in sorted(roles, key=lambda key: ("mirror", "same", "end").index(roles[key]))}


def weight_on_end(case: Case) -> Answer:
    """Whether the source's end mark gets more or less than an even share of the weight."""
    weights, config = cross_maps(case), case.checkpoint.config
    n_keys = weights.shape[-1]
    if not config.source_end or case.trace.src_ids[n_keys - 1] != config.source_end[-1]:
        raise QuestionNotApplicable(
            "In this model, the source does not end with an end mark; choose another checkpoint."
        )
    refuse_if(n_keys < 3, Refusal.TOO_SHORT)
    share, even = float(weights[..., -1].mean()), 1 / n_keys
    right = between((even / FAIR, FAIR * even), share, ("less", "even", "more"))
    return Answer(right, {"mark": case.trace.src_tokens[n_keys - 1], "share": share, "even": even, "n": n_keys})


def heads_that_agree(case: Case) -> Answer:
    """In how many heads the piece that all together weigh most is the strongest of the text."""
    own = list(own_pieces(case))
    rows = cross_maps(case)[:, :, case.at("step")][..., own]  # [layer, head, piece of the text]
    n_heads, n_own = rows.shape[0] * rows.shape[1], rows.shape[2]
    refuse_if(n_heads < 2, Refusal.ONE_HEAD)
    refuse_if(n_own < 2, Refusal.TOO_SHORT)
    agree = rows.argmax(axis=-1) == own.index(case.at("key"))
    count = int(agree.sum())
    right = counted(agree, clear(rows), lambda k: "all" if k == n_heads else ("most" if 2 * k > n_heads else "few"))
    return Answer(right, {"count": count})


def without_looking(case: Case) -> Answer:
    """What the output becomes if no step can look at the piece that was weighed most."""
    picked = looked_at(case)
    mute = Mute(kind="cross", key=int(picked["key"]) - 1)
    before, other = case.trace, case.changed(mute)
    at, shown = first_difference(before, other)
    same = before.tgt_ids == other.tgt_ids
    right = "same" if same else ("here" if at == int(picked["step"]) else "elsewhere")
    was = before.tgt_tokens[at - 1] if at <= before.n_steps else ""
    return Answer(right, {**case.outputs(other), "do": str(mute), "at": at, "shown": shown, "was": was})


LETTERS: Final = 12  # of a made-up word
RARE_SIGN: Final = "\U00013000"  # a hieroglyph


def cut(case: Case) -> dict[str, Any]:
    """The sentence, how large its vocabulary is, and what stands between spaces."""
    own_pieces(case)
    words, size = case.trace.query.source.split(), case.checkpoint.src_tokenizer.size
    return {"sentence": " ".join(words), "size": size, "letters": len("".join(words)), "words": len(words)}


def made_word(case: Case) -> dict[str, Any]:
    """Letters of the sentence as no text has them, which all are in the vocabulary."""
    pieces = [case.trace.src_tokens[place] for place in own_pieces(case)]
    tokenizer = case.checkpoint.src_tokenizer
    letters = [sign for sign in "".join(pieces) if sign.isalpha() and tokenizer.id_of(sign) is not None]
    made = "".join(reversed(letters))[:LETTERS]
    if len(set(made)) < 2 or tokenizer.id_of(SPACE_MARK + made) is not None or tokenizer.id_of(made) is not None:
        raise QuestionNotApplicable(Refusal.TOO_SHORT)
    return {"made": made, "size": tokenizer.size}


def marked_piece(case: Case) -> dict[str, Any]:
    """A piece of the sentence that begins with the mark of a space, the longest."""
    pieces = [case.trace.src_tokens[place] for place in own_pieces(case)]
    marked = [piece for piece in pieces if piece.startswith(SPACE_MARK)]
    refuse_if(
        not marked, say("No token of this sentence begins with the mark {mark}; try another sentence.", mark=SPACE_MARK)
    )
    return {"piece": max(marked, key=len), "mark": SPACE_MARK}


def rare_sign(case: Case) -> dict[str, Any]:
    """A sign that no training text here had."""
    own_pieces(case)
    return {"sign": RARE_SIGN, "size": case.checkpoint.src_tokenizer.size}


TWICE, FOUR_TIMES = 1.5, 3.0  # a text that is so many times as long letter by letter counts as up to so much longer


def pieces_of_the_sentence(case: Case) -> Answer:
    """Into how many pieces the sentence is cut, without marks."""
    pieces = [case.trace.src_tokens[place] for place in own_pieces(case)]
    return Answer(float(len(pieces)), {"k": len(pieces), "cut": " · ".join(pieces)}, usual=float(case.picked["words"]))


def new_word(case: Case) -> Answer:
    """What becomes of a word that is not in the vocabulary, but whose letters are."""
    tokenizer = case.checkpoint.src_tokenizer
    found = tokenizer.encode(str(case.picked["made"]))
    refuse_if(any(tokenizer.is_special(i) for i in found.ids), NOT_IN_VOCABULARY)
    right = "smaller" if len(found.ids) > 1 else "left_out"
    return Answer(right, {"cut": " · ".join(found.pieces), "k": len(found.ids)})


def mark_of_a_space(case: Case) -> Answer:
    """What the mark that pieces begin with stands for: what is there once pieces are joined to a text."""
    tokenizer, piece = case.checkpoint.src_tokenizer, str(case.picked["piece"])
    own = tokenizer.id_of(piece)
    if own is None:
        raise QuestionNotApplicable(NOT_IN_VOCABULARY)
    twice = tokenizer.decode([own, own])
    word = piece.removeprefix(str(case.picked["mark"]))
    right = "space" if twice.strip() == f"{word} {word}".strip() else "nothing"
    return Answer(right, {"twice": twice.strip(), "word": word})


def sign_that_is_unknown(case: Case) -> Answer:
    """What the model reads for a sign that its vocabulary lacks."""
    tokenizer, sign = case.checkpoint.src_tokenizer, str(case.picked["sign"])
    unknown = [i for i in tokenizer.encode(sign).ids if i == case.checkpoint.config.unk_id]
    refuse_if(not unknown, say("This vocabulary has a token for every byte, so it can read any character."))
    return Answer("unknown", {"mark": tokenizer.piece(unknown[0]), "written": tokenizer.decode(unknown) or "–"})


def letters_for_pieces(case: Case) -> Answer:
    """How many times as long the source would be if it were cut into letters."""
    pieces, letters = len(own_pieces(case)), int(case.picked["letters"])
    times = letters / pieces
    right = "same" if times <= 1 else ("twice" if times < TWICE else "four" if times < FOUR_TIMES else "more")
    values = {"times": times, "k": pieces, "squared": times**2}
    return Answer(right, values, variant="same" if right == "same" else "longer")
