"""Pictures of the Masks page: masks as booleans and numbers, padded batch, one row; causality and padding checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from glassformer.charts import masks as charts
from glassformer.charts import theme
from glassformer.charts.grammar import finite, table_of, upright
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.charts.theme import Spec, literal
from glassformer.masks import MasksLook, mask_texts
from glassformer.masks.scene import CHECKS, NAMES, ONE_ROW, WHOLE, MasksScene, closed_for
from glassformer.runs.map_axes import SOURCE_ROWS
from glassformer.runs.picture import Plot
from glassformer.state.view import Click, cell_of, into, place_below
from transformer.analysis.mask_checks import Movement, PaddingMovement, another_piece, check_causality, check_padding
from transformer.i18n import joined, say

HOW_TO_READ_MOVEMENT = say(
    "Each mark is one row: the largest |difference| between the two runs. Float32 rounding alone can cause "
    "differences within the shaded band. Differences of exactly 0 are drawn below the logarithmic scale."
)
LOGITS, VECTORS = say("max |Δ logit|"), say("max |Δ component|")
READS_PREDICTS, _ZERO = say("Reads → predicts"), say("exactly 0")
_LOOKS = [
    {"marker": {"symbol": symbol, "color": shade, "size": 10, "line": {"width": 2, "color": shade}}}
    for symbol, shade in (("circle", theme.TARGET_COLOR), ("diamond-open", theme.NEUTRAL_COLOR))
]
MOST_PADS = 16


@WHOLE.picture("mask_bool", say("The mask as True and False"), follows="still")
def as_bool(scene: MasksScene) -> Plot:
    """The mask after broadcasting."""
    title = say("{mask}, sentence {n}, bool", mask=NAMES[scene.name], n=scene.batch.sentence + 1)
    return _map(scene, "bool", title, say("True and False"))


@WHOLE.picture("mask_additive", say("The same mask as numbers: 0 and −∞"), follows="still")
def as_additive(scene: MasksScene) -> Plot:
    """The same as it is added to the scores."""
    title = say("{mask}, sentence {n}, additive", mask=NAMES[scene.name], n=scene.batch.sentence + 1)
    return _map(scene, "additive", title, say("0 and minus infinity"))


def _map(scene: MasksScene, convention: charts.Convention, title: str, written: str) -> Plot:
    place, whole, found = scene.batch.sentence, scene.whole, scene.axes
    spec = charts.mask_map_spec(
        whole,
        reasons=scene.reasons,
        changed=scene.changed,
        queries=found.queries,
        keys=found.keys,
        title=title,
        axes=found.names,
        cell=scene.cell,
        colour=found.key_side,
        convention=convention,
    )
    alt = say(
        "{mask} mask of sentence {n} after broadcasting, written as {written}: {open} of {all} cells are open.",
        mask=NAMES[scene.name],
        n=place + 1,
        written=written,
        open=int(whole.sum()),
        all=whole.size,
    )
    return Plot(spec=spec, alt=alt, fit=True, clicked=partial(_cell_in, shape=whole.shape))


def _cell_in(click: Click, shape: tuple[int, ...]) -> Mapping[str, int] | None:
    cell = cell_of(click)
    return {"query": cell[0], "key": cell[1]} if cell and cell[0] < shape[0] and cell[1] < shape[1] else None


@WHOLE.picture("mask_batch", say("The padded batch"), follows="still")
def batch(scene: MasksScene) -> Plot:
    """Which positions of the batch are padding."""
    side = scene.axes.key_side
    real = scene.batch.is_real(side)
    (n_sentences, n_positions), shape = real.shape, list(real.shape)
    title = say("The batch: target ids {shape}", shape=shape)
    if side == "source":
        title = say("The batch: source ids {shape}", shape=shape)
    spec = charts.padded_batch_spec(
        [scene.batch.pieces(side, i) for i in range(n_sentences)],
        real,
        sentences=[say("Sentence {n}", n=i + 1) for i in range(n_sentences)],
        columns=[str(i + 1) for i in range(n_positions)],
        title=title,
        marked_row=scene.batch.sentence,
        colour=side,
    )
    alt = say(
        "Sentences in the batch: {n}. Lengths in tokens: {lengths}, each padded to {positions} positions; "
        "{padding} positions in all are padding.",
        n=n_sentences,
        lengths=joined(", ", (str(int(row.sum())) for row in real)),
        positions=n_positions,
        padding=int((~real).sum()),
    )
    return Plot(spec=spec, alt=alt)


@dataclass(frozen=True)
class MaskedRow:
    """One query of one head, each [key]."""

    scores: np.ndarray  # before the mask
    allowed: np.ndarray
    weights: np.ndarray  # after mask and softmax
    reasons: list[str]  # why each key is closed
    filled: str  # what a closed score becomes, as it is written


def row_of(scene: MasksScene) -> MaskedRow:
    """The selected row, as it is in its run, with what is changed there; errors as of `scene`."""
    (layer, head), query, n_keys = scene.where, scene.cell[0], len(scene.axes.keys)
    run, attention = scene.run, scene.batch.parts.attention(scene.kind)
    sites = [f"{attention.place(layer)}.{part}" for part in ("scores", "mask", "weights")]
    recorded = run.work.replay(run.checkpoint, scene.batch.traces[scene.batch.sentence], sites)
    whole, mask, weighed = (recorded[site] for site in sites)
    mask = np.broadcast_to(mask, whole.shape)
    if run.trace.query.interventions and attention.causal:
        whole = _without_unread(whole)
    reasons = closed_for(scene.taken, scene.masks, scene.batch.sentence)
    closed = mask_texts.CLOSED_OTHERWISE
    why = [next((one for one, at in reasons.items() if at[query, k]), closed) for k in range(n_keys)]
    scores, allowed, weights = (values[head, query, :n_keys] for values in (whole, mask, weighed))
    filled = mask_texts.filled(run.trace.query, run.checkpoint.config, scene.kind)
    return MaskedRow(scores, allowed, weights, why, filled)


def _without_unread(scores: np.ndarray) -> np.ndarray:
    """Scores [head, query, key], NaN for keys that a query had not read yet.

    Under some changes each prefix is read by itself (`transformer.runs.recording_pass`): then what comes later is not
    closed but not there, and all of it was filled with 0.
    """
    later = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
    return scores if scores[:, later].any() else np.where(later, np.nan, scores)


@ONE_ROW.picture("mask_row", say("One row before and after its mask"), follows="still")
def one_row(scene: MasksScene) -> Plot:
    """A query's scores, the same after the mask, its weights."""
    row, found, (query, key), (layer, head) = row_of(scene), scene.axes, scene.cell, scene.where
    title = say(
        "Layer {layer}, head {head}: query {n}, {query}",
        layer=layer + 1,
        head=head + 1,
        n=query + 1,
        query=found.queries[query],
    )
    spec = charts.masked_row_spec(
        row.scores,
        row.allowed,
        row.weights,
        keys=found.keys,
        title=title,
        key_axis=found.names[1],
        key=key,
        colour=found.key_side,
        mask_reasons=row.reasons,
        filled=row.filled,
    )
    alt = say(
        "Query {n}, {query}: its scores with {keys} keys before and after the mask, and the weights; {closed} "
        "keys are closed.",
        n=query + 1,
        query=found.queries[query],
        keys=len(found.keys),
        closed=int((~row.allowed).sum()),
    )
    return Plot(spec=spec, alt=alt, fit=True, clicked=into("key", place_below(len(found.keys)), query=query))


@dataclass(frozen=True)
class Check:
    """What two runs say of a mask."""

    moved: Movement
    held: bool
    verdict: str


def changed_token(scene: MasksScene) -> int | None:
    """The token whose piece the causality check changes, from 0; None if nothing comes later."""
    n_rows, asked = scene.batch.n_target(scene.batch.sentence), scene.run.view.of(MasksLook).changed
    return None if n_rows < 2 else asked if asked is not None and 1 <= asked < n_rows else n_rows // 2


def other_piece(scene: MasksScene, changed: int) -> int:
    """The id that the second run reads there."""
    return another_piece(scene.batch.traces[scene.batch.sentence], changed, config=scene.run.checkpoint.config)


def causality_check(scene: MasksScene, changed: int) -> Check:
    """Whether a later piece moves earlier rows, computed once; errors as of `scene`."""
    batch, checkpoint, place = scene.batch, scene.run.checkpoint, scene.batch.sentence
    ids, piece_id = (batch.src_ids, batch.tgt_ids), other_piece(scene, changed)
    moved: Movement = scene.run.work.compute(
        ("causality", checkpoint.content_hash, *ids, place, changed, piece_id),
        lambda: check_causality(checkpoint.model, *ids, sentence=place, place=changed, piece_id=piece_id),
        nbytes=_nbytes,
    )
    n_rows, n_sentences = batch.n_target(place), len(batch.traces)
    return Check(moved, *mask_texts.causality_verdict(moved, place=changed, n_rows=n_rows, n_sentences=n_sentences))


@CHECKS.picture("mask_causality", say("Causality: how much each row changes"), follows="still")
def causality(scene: MasksScene) -> Plot | None:
    """How far a changed piece moves the logits of each row."""
    changed, place = changed_token(scene), scene.batch.sentence
    if changed is None:
        return None
    check, n_rows = causality_check(scene, changed), scene.batch.n_target(place)
    moved = check.moved
    kept, taken = moved.kept[:n_rows], moved.taken[:n_rows]
    series: dict[str, np.ndarray] = {say("with the causal mask"): kept, say("without it"): taken}
    title = say(
        "Change at token {n} of sentence {sentence}: how much each row's logits change",
        n=changed + 1,
        sentence=place + 1,
    )
    rows = Axis(READS_PREDICTS, scene.batch.decoder_rows(place)[:n_rows])
    spec = movement(title, rows, LOGITS, series, moved.rounding, [upright(changed, below=False) | {"yref": "paper"}])
    return Plot(spec=spec, alt=check.verdict, how_to_read=HOW_TO_READ_MOVEMENT)


def movement(
    title: str,
    rows: Axis,
    value_name: str,
    series: Mapping[str, np.ndarray],
    rounding: float,
    marks: Sequence[Spec] = (),
) -> Spec:
    """How far each row moved between two runs, in one or two series; the logarithmic axis has a place for exactly 0.

    The band up to `rounding`, the largest difference that counts as float32 rounding, is shaded.
    """
    every = np.concatenate([*series.values(), [rounding]])
    powers = np.log10(every[np.isfinite(every) & (every > 0)])
    first, last = int(np.floor(powers.min())) - 1, int(np.ceil(powers.max() + 0.1))
    zero, exponents = 10.0**first, range(first + 1, last + 1, max(1, (last - first) // 6))
    powers_said = [f"10<sup>−{-one}</sup>" if one < -3 else f"{10.0**one:g}" for one in exponents]
    ticks = {"tickvals": [zero, *(10.0**one for one in exponents)], "ticktext": [_ZERO, *powers_said]}
    axis = {"type": "log", "range": [first - 0.4, last + 0.2], "tickmode": "array", "fixedrange": True} | ticks
    drawn = []
    for (name, values), look in zip(series.items(), _LOOKS, strict=False):
        said = {"text": [f"{value:.3g}" if value else _ZERO for value in values]}
        drawn.append(Series(name, np.where(values == 0, zero, values), look | said, "markers", "%{text}"))
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": zero / 4, "y1": rounding, "layer": "below"}
    shapes = [band | {"fillcolor": theme.MASK_COLOR, "line": {"width": 0}}, *marks]
    spec: Spec = lines(title, rows, Scale(value_name, axis), drawn, height=360, shapes=shapes)["spec"]
    named = [joined(" ", [sign, literal(name)]) for sign, name in zip("●◇", series, strict=False)]
    spec["layout"]["title"]["subtitle"] = {"text": joined(" ", named), "font": {"size": 13}}
    table_of(
        spec["layout"],
        (say("{rows} number", rows=rows.title), range(1, len(rows.labels) + 1)),
        (rows.title, rows.labels),
        *((say("{value} {run}", value=value_name, run=name), map(finite, values)) for name, values in series.items()),
    )
    return spec


def most_pads(scene: MasksScene) -> int:
    """How many pads fit behind the sentence and its output; less than 1 if none does."""
    batch, place = scene.batch, scene.batch.sentence
    return min(MOST_PADS, scene.run.checkpoint.config.max_len - max(batch.n_source(place), batch.n_target(place)))


def padding_checks(scene: MasksScene) -> dict[str, Check]:
    """What pads after each side that a stack reads move, computed once; nothing if none can be added."""
    checkpoint, batch, place, most = scene.run.checkpoint, scene.batch, scene.batch.sentence, most_pads(scene)
    if checkpoint.config.pad_id is None or most < 1:
        return {}
    n_pads = min(scene.run.view.of(MasksLook).pads, most)
    src, tgt = batch.src_ids[place][: batch.n_source(place)], batch.tgt_ids[place][: batch.n_target(place)]
    moved: PaddingMovement = scene.run.work.compute(
        ("padding", checkpoint.content_hash, src, tgt, n_pads),
        lambda: check_padding(checkpoint.model, src, tgt, n_pads=n_pads),
        nbytes=lambda found: sum(_nbytes(one) for one in (found.source, found.target) if one is not None),
    )
    found = {}
    for side, one in (("source", moved.source), ("target", moved.target)):
        if one is not None:
            found[side] = Check(one, *mask_texts.padding_verdict(one, of_source=side == "source", n_pads=n_pads))
    return found


@CHECKS.picture("mask_source_pads", say("Padding: pads after the source"), follows="still")
def source_pads(scene: MasksScene) -> Plot | None:
    """How far pads after the source move each row."""
    return _pads(scene, "source", say("with the source padding mask"))


@CHECKS.picture("mask_target_pads", say("Padding: pads after the target"), follows="still")
def target_pads(scene: MasksScene) -> Plot | None:
    """How far pads after the target move each row."""
    return _pads(scene, "target", say("with the target padding mask"))


def _pads(scene: MasksScene, side: str, with_mask: str) -> Plot | None:
    """What pads on one side do: to logits, or to the vectors of an encoder-only model."""
    check, batch = padding_checks(scene).get(side), scene.batch
    if check is None:
        return None
    place, logits = batch.sentence, batch.parts.writes
    rows = batch.decoder_rows(place)[: batch.n_target(place)] if logits else batch.pieces("source", place)
    n_pads = min(scene.run.view.of(MasksLook).pads, most_pads(scene))
    title = mask_texts.about_pads(of_source=side == "source", n_pads=n_pads)
    axis = Axis(READS_PREDICTS, rows) if logits else Axis(SOURCE_ROWS, rows[: batch.n_source(place)])
    moved, name = check.moved, LOGITS if logits else VECTORS
    spec = movement(title, axis, name, {with_mask: moved.kept, say("without it"): moved.taken}, moved.rounding)
    return Plot(spec=spec, alt=check.verdict, how_to_read=HOW_TO_READ_MOVEMENT)


def _nbytes(moved: Movement) -> int:
    return moved.kept.nbytes + moved.taken.nbytes
