"""Computed lesson answers on masks (causal, padding, fills) and planted faults (heads, shifted ids, NaN, leak).

Picks: which rows, tokens and keys a lesson about masks looks at; the faults that a lesson plants into the learner's own
checkpoint, and what is seen of them. The app can make each of these changes, so the answers come from the learner's
sentence. Rows, tokens, layers and heads count from 1.

Source: Vaswani et al. (2017), section 3.2.3.
"""

import hashlib
from typing import Any, Final

import numpy as np
import torch

import transformer
from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    amount,
    between,
    first_difference,
    largest,
    largest_difference,
    numbered,
    only_rounding,
    refuse_if,
    worded,
)
from glassformer.extensions.what_if.interventions import CausalMask, HeadsTold, NoGuard, PaddingMask, Pads, Replace
from glassformer.extensions.what_if.interventions.piece_changes import own_places
from transformer.analysis.mask_checks import Movement, another_piece, batch_masks, check_causality, check_padding
from transformer.model.anatomy import anatomy
from transformer.model.attention_scores import masked_softmax
from transformer.model.taps import Recorder, Tap
from transformer.runs.apply_interventions import tap_for
from transformer.runs.inputs import Reference
from transformer.runs.interventions import Intervention, write
from transformer.runs.recording_pass import first_site
from transformer.runs.running import replay
from transformer.runs.teacher_forcing import judge
from transformer.runs.trace import Trace

LEAST_READ: Final = 3  # a row with one before it and one after it
PADS: Final = 4


def masked_row(case: Case) -> dict[str, Any]:
    """A row of the decoder with rows before it and after it."""
    n = positions_read(case)
    row = max(2, n // 2)
    return {"row": row, "n": n, "read": case.trace.read_tokens[row - 1]}


def replaced_token(case: Case) -> dict[str, Any]:
    """A token in the middle of what the decoder reads, and what is put in its place; as the page chooses both."""
    return exchanged(case, positions_read(case) // 2)


def exchanged(case: Case, at: int) -> dict[str, Any]:
    """What is said of a token that the decoder reads, at a place from 0, and of what is put in its place."""
    other = another_piece(case.trace, at, config=case.checkpoint.config)
    return {
        "place": at + 1,
        "n": positions_read(case),
        "piece": case.trace.read_tokens[at],
        "other": case.trace.vocabulary[other],
        "other_id": other,
    }


def pads_that_fit(case: Case) -> dict[str, Any]:
    """How many pads are appended to the source."""
    config, trace = case.checkpoint.config, case.trace
    parts = anatomy(config)
    refuse_if(not (parts.reads and parts.writes), Refusal.NEEDS_BOTH)
    refuse_if(config.pad_id is None, Refusal.NO_PADS)
    room = config.max_len - max(len(trace.src_ids), len(trace.read_ids))
    refuse_if(room < 1, Refusal.TOO_LONG)
    return {"pads": min(PADS, room)}


def closed_key(case: Case) -> dict[str, Any]:
    """A key that comes after its query and, were it not closed, would have much weight: in the first layer."""
    n = positions_read(case)
    config, trace = case.checkpoint.config, case.trace
    if config.mask_fill is not None:
        raise QuestionNotApplicable(
            "This model replaces the scores of closed keys with {fill:g} instead of adding −∞ to them.",
            fill=config.mask_fill,
        )
    (scores,) = _first_layer(case, "scores")  # [H, T, T]
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float64)
    shares /= shares.sum(axis=-1, keepdims=True)  # as if all keys were open
    future = np.triu(np.ones((n, n), bool), k=1)
    future[0] = False  # the first row has but one open key, which takes all in any case
    head, query, key = np.unravel_index(largest(np.where(future, shares, -1.0)), shares.shape)
    return {
        "head": int(head) + 1,
        "query": int(query) + 1,
        "key": int(key) + 1,
        "key_piece": trace.read_tokens[key],
        "score": f"{scores[head, query, key]:.2f}".replace("-", "−"),
    }


def positions_read(case: Case) -> int:
    """How many tokens the decoder reads."""
    refuse_if(not anatomy(case.checkpoint.config).writes, Refusal.WRITES_NOTHING)
    n = len(case.trace.read_ids)
    refuse_if(n < LEAST_READ, Refusal.TOO_SHORT)
    return n


FILLS: Final = (-1.0, -10.0, -1e9)
FILL_WORDS: Final = ("one", "ten", "billion")


def keys_seen(case: Case) -> Answer:
    """How many positions a row of the decoder may see."""
    row, n = int(case.picked["row"]), int(case.picked["n"])
    masks = batch_masks(case.checkpoint.model, (case.trace.src_ids,), (case.trace.read_ids,))
    seen = int(masks.whole("causal")[0, row - 1].sum())
    numbers = {"itself": row, "before": row - 1, "all": n, "next": row + 1}
    right = next(word for word, k in numbers.items() if k == seen)
    return Answer(right, {"k": seen}, options=numbered(numbers))


def rows_moved(case: Case) -> Answer:
    """Which rows' logits move where a token is replaced."""
    at, moved = case.at("place"), _causality(case)
    before, beyond = float(moved.kept[:at].max()), moved.kept > moved.rounding
    refuse_if(not beyond[at + 1 :].any(), Refusal.NO_EFFECT)
    values = {"a": at + 1, "b": len(moved.kept), "kept": amount(before)}
    if not only_rounding(before, moved.rounding):
        return Answer("all", values, variant="open")
    return Answer("from", values, variant="closed")


def rows_moved_without_mask(case: Case) -> Answer:
    """Which rows' logits move where a token is replaced and no causal mask closes the future."""
    at, moved = case.at("place"), _causality(case)
    taken = float(moved.taken[:at].max())
    refuse_if(taken <= moved.rounding, Refusal.NO_EFFECT)
    return Answer("earlier", {"taken": amount(taken), "before": at})


def _causality(case: Case) -> Movement:
    ids, other = ((case.trace.src_ids,), (case.trace.read_ids,)), int(case.picked["other_id"])
    return check_causality(case.checkpoint.model, *ids, sentence=0, place=case.at("place"), piece_id=other)


def pads_move(case: Case) -> Answer:
    """How far pads after the source move the logits."""
    source = _padding(case)["source"]
    most = float(source.kept.max())
    right = "rounding" if only_rounding(most, source.rounding) else "visibly"
    return Answer(right, {"amount": amount(most)})


def sides_moved_without_mask(case: Case) -> Answer:
    """On which side pads move the logits where nothing closes padding."""
    found = _padding(case)
    moves = {side: not only_rounding(float(one.taken.max()), one.rounding) for side, one in found.items()}
    refuse_if(not moves["source"], Refusal.NO_EFFECT)
    right = "both" if moves["target"] else "source"
    return Answer(right, {side: amount(float(one.taken.max())) for side, one in found.items()})


def _padding(case: Case) -> dict[str, Movement]:
    trace, n_pads = case.trace, int(case.picked["pads"])
    found = check_padding(case.checkpoint.model, trace.src_ids, trace.read_ids, n_pads=n_pads)
    assert found.source is not None  # the pick has asked for both stacks
    assert found.target is not None
    return {"source": found.source, "target": found.target}


def closed_weight(case: Case) -> Answer:
    """What a closed key weighs."""
    scores, mask, weights = _row(case)
    key = case.at("key")
    right = "zero" if weights[key] == 0 else "tiny"
    would = float(torch.tensor(scores).softmax(-1)[key])  # were it open
    return Answer(right, {"w": float(weights[key]), "open": would, "keys": int(mask.sum())})


def fill_that_closes(case: Case) -> Answer:
    """Which number in the place of −∞ leaves closed keys no weight at all."""
    scores, mask, _ = _row(case)
    left = {word: _left(scores, mask, fill) for word, fill in zip(FILL_WORDS, FILLS, strict=True)}
    right = next((word for word, share in left.items() if share == 0), "none")
    return Answer(right, {"left_one": left["one"], "left_ten": amount(left["ten"]), "left_billion": left["billion"]})


def _row(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, mask and weights [K] of the row that was picked, in the first layer."""
    scores, mask, weights = _first_layer(case, "scores", "mask", "weights")
    where = int(case.picked["head"]) - 1, int(case.picked["query"]) - 1
    return scores[where].copy(), np.broadcast_to(mask, scores.shape)[where].copy(), weights[where]


def _first_layer(case: Case, *names: str) -> list[np.ndarray]:
    """What the decoder's first self-attention had in the run."""
    sites = [f"decoder.0.self_attn.{name}" for name in names]
    found = replay(case.checkpoint, case.trace, sites)
    return [found[site] for site in sites]


def _left(scores: np.ndarray, mask: np.ndarray, fill: float) -> float:
    """How much weight the closed keys of a row have together when their scores are a number."""
    is_open = torch.tensor(mask)
    return float(masked_softmax(torch.tensor(scores), is_open, fill=fill)[~is_open].sum())


# ------------------------------------------------------------------------------------------------ planted faults

MASK_FAULTS: Final[dict[str, tuple[Intervention, ...]]] = {
    "none": (),
    "off": (CausalMask("off"),),
    "inverted": (CausalMask("inverted"),),
    "peek": (CausalMask("peek"),),
}
"""What may be wrong with the causal mask. Of those that look alike in a short output the first one is planted."""

LEAST_ROWS: Final = 4
MOST_REPLACED: Final = 40


def wrong_heads(case: Case) -> dict[str, Any]:
    """A number of heads that the checkpoint was not trained with."""
    config = case.checkpoint.config
    told = 1 if config.n_heads > 1 else next((n for n in (2, 4, 3) if config.d_head % n == 0), 1)
    refuse_if(
        told == config.n_heads or config.n_kv_heads != config.n_heads or config.n_decoder_heads, Refusal.OTHER_HEADS
    )
    return {"told": told, "own": config.n_heads}


def mask_evidence(case: Case) -> dict[str, Any]:
    """Which rows move when a token is replaced, under a mask that a fault may have been planted in."""
    n = positions_read(case)
    refuse_if(n < LEAST_ROWS, Refusal.TOO_SHORT)
    at = n - 2
    seen = {name: _span(_rows_moved(case, at, *changes)) for name, changes in MASK_FAULTS.items()}
    spans = {span: name for name, span in reversed(seen.items()) if span}  # the first of those that look alike
    apart = [name for name in MASK_FAULTS if name in spans.values()]
    refuse_if(len(apart) < 3 or seen["none"] != (at + 1, n), Refusal.TOO_SHORT)
    planted = apart[hashlib.sha256(case.trace.query.to_json().encode()).digest()[0] % len(apart)]
    first, last = next(span for span, name in spans.items() if name == planted)
    return exchanged(case, at) | {"a": first, "b": last, "planted": planted, "apart": apart}


@torch.inference_mode()
def _rows_moved(case: Case, at: int, *changes: Intervention) -> np.ndarray:
    """Which rows of the decoder have other logits when the token at a place, from 0, is different; bool [T]."""
    checkpoint, trace = case.checkpoint, case.trace
    tap = tap_for(changes, checkpoint)
    read = list(trace.read_ids)
    before = _logits(case, read, tap)
    read[at] = another_piece(trace, at, config=checkpoint.config)
    moved = np.abs(before - _logits(case, read, tap)).max(axis=-1) / max(1.0, float(np.abs(before).max()))
    return np.array([not only_rounding(float(by)) for by in moved])


def _logits(case: Case, read: list[int], tap: Tap) -> np.ndarray:
    logits: torch.Tensor = case.checkpoint.model(torch.tensor([case.trace.src_ids]), torch.tensor([read]), tap=tap)
    return logits[0].numpy(force=True)


def _span(rows: np.ndarray) -> tuple[int, int] | None:
    """The first and the last row that moved, from 1; None if there is none, or one between them did not."""
    places = np.flatnonzero(rows)
    if not len(places) or len(places) != places[-1] - places[0] + 1:
        return None
    return int(places[0]) + 1, int(places[-1]) + 1


def shifted_pieces(case: Case) -> dict[str, Any]:
    """Every piece of the source as its neighbour in the vocabulary: as if one piece had been added in front."""
    config, trace = case.checkpoint.config, case.trace
    places, tokenizer = own_places(trace.src_ids, config), case.checkpoint.src_tokenizer
    refuse_if(not places, Refusal.ONLY_SPECIAL)
    refuse_if(len(places) > MOST_REPLACED, Refusal.TOO_LONG)
    ordinary = [i for i in range(config.src_vocab_size) if not tokenizer.is_special(i)]
    # The next one of the vocabulary; after the last one the first.
    ids = [next((i for i in ordinary if i > trace.src_ids[place]), ordinary[0]) for place in places]
    changes = tuple(Replace(place, piece) for place, piece in zip(places, ids, strict=True))
    return {"first": trace.src_tokens[places[0]], "instead": tokenizer.piece(ids[0]), "changes": changes}


EXAMPLES: Final = 2
"""Sentences of the card that numbers of heads are compared on beside the learner's; each costs a run."""

CLEAR_NATS: Final = 0.001  # by how much the trained number of heads has to do better than any other
COUNTS: Final = (1, 4, 16)  # of pads
SURE_NATS: Final = 0.1  # a mean log-probability of a piece that is nearer than this to another is about the same
LONGEST_TOLD: Final = 90  # characters of an output that a text repeats


def misread_heads(case: Case) -> Answer:
    """What happens if the parameters are read with another number of heads."""
    told = HeadsTold(int(case.picked["told"]))
    _writes(case)
    other = case.changed(told)
    right = "same" if other.output_text == case.trace.output_text else "other"
    values = {**_changed(case, other), "loss": _own_loss(case), "loss_told": _own_loss(case, told)}
    values["do"] = write((told,))
    return Answer(right, values)


def _loss(case: Case, source: str, output: Reference, *changes: Intervention) -> float:
    """The mean loss of an output of a sentence."""
    return judge(case.checkpoint, case.checkpoint.query(source, interventions=changes), output).mean_loss


def _own_loss(case: Case, *changes: Intervention) -> float:
    """The same of what the checkpoint itself wrote for the learner's sentence."""
    return _loss(case, case.trace.query.source, case.trace.tgt_ids, *changes)


def _writes(case: Case) -> None:
    refuse_if(not case.trace.n_steps, Refusal.EMPTY_OUTPUT)
    refuse_if(not anatomy(case.checkpoint.config).reads, Refusal.NEEDS_BOTH)


def _changed(case: Case, after: Trace) -> dict[str, Any]:
    """What both wrote, not at length, and the step that shows where they part."""
    texts = {
        name: text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}…"
        for name, text in case.outputs(after).items()
    }
    return {**texts, "then_step": first_difference(case.trace, after)[1]}


def evidence_for_heads(case: Case) -> Answer:
    """What tells the number of heads that a checkpoint was trained with: shapes, sizes, or the loss."""
    _writes(case)
    config = case.checkpoint.config
    own, width = config.n_heads, config.n_heads * config.d_head
    refuse_if(config.n_kv_heads != own or config.n_decoder_heads, Refusal.OTHER_HEADS)
    tried = sorted({n for n in (max(1, own // 4), max(1, own // 2), own, 2 * own) if width % n == 0})
    texts: list[tuple[str, Reference]] = [*_given(case)]
    given = len(texts)
    examples = sorted(case.checkpoint.card.tried(), key=len, reverse=True)[:EXAMPLES]  # long ones tell more
    texts += [(source, case.another(source=source).tgt_ids) for source in examples if not given]
    texts.append((case.trace.query.source, case.trace.tgt_ids))
    changes = {n: () if n == own else (HeadsTold(n),) for n in tried}
    losses = {n: sum(_loss(case, *text, *changes[n]) for text in texts) / len(texts) for n in tried}
    others = [loss for n, loss in losses.items() if n != own]
    refuse_if(not others or min(others) - losses[own] < CLEAR_NATS, Refusal.NO_WINNER)
    listed = " · ".join(f"{n}: {loss:.3f}" for n, loss in losses.items())
    values = {"losses": listed, "texts": len(texts), "given": given, "own": own, "tried": len(tried)}
    return Answer("loss", values, variant="right" if given else "own")


def _given(case: Case) -> list[tuple[str, str]]:
    """Sentences of the card with outputs that people wrote, if it has some."""
    card = case.checkpoint.card
    if card.target_code.split("-")[0] != "en":
        return []
    pairs = [pair for pair in card.glosses.items() if pair[0] != case.trace.query.source]
    return sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)[:EXAMPLES]


def planted_mask(case: Case) -> Answer:
    """Which fault of the causal mask moves the rows that moved."""
    picked, planted = case.picked, case.picked["planted"]
    place, layers = int(picked["place"]), case.checkpoint.config.n_decoder_layers
    values = {"layers": layers, "place": place, "a": picked["a"], "b": picked["b"], "first": max(1, place - layers)}
    values["do"] = write(MASK_FAULTS[planted])
    return Answer(planted, values, options=worded(*picked["apart"]))


def doctors_test_of_a_leak(case: Case) -> Answer:
    """Which test of the doctor finds out that a model was trained on a leak."""
    if not hasattr(transformer, "examine"):
        raise QuestionNotApplicable("This step needs the doctor, which this app was installed without.")
    (found,) = transformer.examine(case.checkpoint, tests=("wiring",)).findings
    source = case.trace.src_ids
    read = (case.checkpoint.config.decoder_start_id, *source)  # such a model writes nothing itself
    model = case.checkpoint.model
    moved = check_causality(model, (source,), (read,), sentence=0, place=len(source), piece_id=source[0])
    leaks, sees = found.verdict == "broken", float(moved.kept[:-1].max()) > moved.rounding
    right = "both" if leaks and sees else "leak" if leaks else "causality" if sees else "neither"
    return Answer(right, {"leak": found.measured.headline or found.measured.said})


def pads_until_it_shows(case: Case) -> Answer:
    """From how many pads on an unmasked source gives another output."""
    _writes(case)
    config, trace = case.checkpoint.config, case.trace
    refuse_if(config.pad_id is None, Refusal.NO_PADS)
    tried = [n for n in COUNTS if len(trace.src_ids) + n <= config.max_len]
    refuse_if(len(tried) < 2, Refusal.TOO_LONG)
    right, shown, other = "never", tried[-1], trace
    for n in tried:
        other = case.changed(Pads(n), PaddingMask("all", "off"))
        if other.output_text != trace.output_text:
            right, shown = f"pads-{n}", n
            break
    kept = case.changed(Pads(shown))
    refuse_if(kept.tgt_ids != trace.tgt_ids, Refusal.NEAR)
    values = {
        **_changed(case, other),
        "k": shown,
        "kept": amount(largest_difference(trace, kept).by),
        "moved": largest_difference(trace, other).by,
        "do": write((Pads(shown), PaddingMask("all", "off"))),
    }
    options = tuple(Option(f"pads-{n}", f"{n:,}") for n in tried)
    variant = "never" if right == "never" else "changed"
    return Answer(right, values, options=(*options, Option("never")), variant=variant)


@torch.inference_mode()
def first_nan(case: Case) -> Answer:
    """Where the first number that is none appears, if a row of decoder self-attention has no open key."""
    checkpoint, parts = case.checkpoint, anatomy(case.checkpoint.config)
    refuse_if(not parts.writes, Refusal.WRITES_NOTHING)
    refuse_if(len(case.trace.read_ids) < 2, Refusal.TOO_SHORT)
    tap = tap_for((CausalMask("hidden"), NoGuard("decoder")), checkpoint)
    src, tgt = torch.tensor([case.trace.src_ids]), torch.tensor([case.trace.read_ids])
    recorder = Recorder(["decoder.*", "logits"])
    checkpoint.model(src, tgt, tap=tap.also(recorder))
    site = first_site(lambda seen: checkpoint.model(src, tgt, tap=seen), tap=tap)
    own = parts.attention("decoder")
    words = {own.site(0, name): name for name in ("scores", "weights")}
    words |= {"decoder.output": "output", "logits": "logits"}
    if site not in words:
        raise QuestionNotApplicable(
            "In this model, a row with every key closed does not become NaN; choose another checkpoint."
        )
    lost = ~recorder.values["logits"][0].isfinite().all(dim=-1)
    seen = [value for value in recorder.values.values() if value.is_floating_point()]
    bad = sum(bool(value.isnan().any()) for value in seen)
    return Answer(words[site], {"site": site, "bad": bad, "all": len(seen), "rows": int(lost.sum()), "n": len(lost)})


def sureness_of_nonsense(case: Case) -> Answer:
    """Whether a model that is given the wrong pieces is less sure of what it writes."""
    _writes(case)
    changes = case.picked["changes"]
    other = case.changed(*changes)
    refuse_if(not other.n_steps or other.output_text == case.trace.output_text, Refusal.NO_EFFECT)
    before, after = (trace.log_prob / trace.n_steps for trace in (case.trace, other))
    right = between((-SURE_NATS, SURE_NATS), after - before, ("less", "same", "more"))
    values = {**_changed(case, other), "sure": -before, "sure_after": -after}
    values |= {"loss": _own_loss(case, *changes), "do": write(changes)}
    return Answer(right, values)
