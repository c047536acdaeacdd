"""The numbers that a lesson keeps covered, computed from the same run, and every form in which they could be sent."""

import base64
import re
from dataclasses import replace

import numpy as np

from glassformer.components.packing import FINE_LEVELS
from glassformer.extensions.lessons.library.subjects.weights_questions import walk_of
from transformer.analysis.mask_checks import check_causality, check_padding, record_attention
from transformer.analysis.plain_attention import without_parameters

DIGITS = 7  # the beginning of however many digits a number is written with
NEAR = 1e-4  # a share of a number: another thread's sums differ in the last bits, and a step of 1/65,535 rounds
_NUMBERS = re.compile(rb"-?[0-9]+[.][0-9]{4,}")
_BYTES = re.compile(rb"[A-Za-z0-9+/]{12,}")  # without the signs that fill up
_KINDS = ("<f8", "<f4", "<u2")  # the last are steps of shares


def sent_of(frames, row):
    """Whether frames hold two neighbours of a row of numbers side by side, or one of them with all its digits."""
    told = b"".join(frames)
    row = np.asarray(row, dtype=np.float64)
    whole = {f"{value:.8f}"[:DIGITS].encode() for value in row if abs(value) >= 0.001 and value != round(value)}
    with np.errstate(all="ignore"):  # letters that are no numbers may be any
        return any(one in told for one in whole) or any(_beside(found, row) for found in _rows(told))


def _rows(told):
    """Every row of numbers that stands in what was sent, as text or as bytes in base64."""
    yield np.array([float(one) for one in _NUMBERS.findall(told)])
    for letters in _BYTES.findall(told):
        whole = base64.b64decode(letters + b"=" * (-len(letters) % 4)) if len(letters) % 4 != 1 else b""
        for kind in _KINDS:
            size = np.dtype(kind).itemsize
            found = np.frombuffer(whole[: len(whole) // size * size], dtype=kind).astype(np.float64)
            yield found / FINE_LEVELS if kind == "<u2" else found


def _beside(found, row):
    """Whether two neighbours of a row are neighbours of what was found, too; zeros and ones say nothing."""
    alike = np.abs(found[:, None] - row) <= NEAR * np.abs(row)  # [found, row]
    alike &= (np.abs(row) >= 0.001) & (row != np.round(row))
    return bool((alike[:-1, :-1] & alike[1:, 1:]).any())


def covered(lesson, n, case, posed):
    """Rows of numbers that step `n` covers; none where nothing but a choice is covered."""
    return ROWS[lesson](n, replace(case, picked=posed.picked))


def _one_piece(n, case):
    trace = case.trace
    written_ones = [float(np.exp(trace.log_probs[t, i])) for t, i in enumerate(trace.tgt_ids)]
    return [[float(one) for one in trace.entropies()], written_ones] if n <= 3 else []


def _one_weight(n, case):
    if n == 5:
        kind, layer, head = case.picked["kind"], case.picked["layer"] - 1, case.picked["head"] - 1
        return [case.trace.maps(kind)[layer, head].ravel().tolist()]
    if n == 6:
        kind, ids = case.picked["kind"], case.trace.src_ids
        plain, _ = without_parameters(case.checkpoint.model, kind, ids, ids, case.trace.mask(kind))
        return [case.trace.maps(kind).mean(axis=(0, 1)).ravel().tolist(), plain.ravel().tolist()]
    found = walk_of(case)
    return [found.weights.tolist(), found.dots.tolist()]


def _masks(n, case):
    trace, model = case.trace, case.checkpoint.model
    if n in (2, 3):
        at, other = case.picked["place"] - 1, case.picked["other_id"]
        moved = check_causality(model, (trace.src_ids,), (trace.read_ids,), sentence=0, place=at, piece_id=other)
        return [moved.taken.tolist()]
    if n in (4, 5):
        return [check_padding(model, trace.src_ids, trace.read_ids, n_pads=case.picked["pads"]).source.taken.tolist()]
    if n in (6, 7):
        found = record_attention(model, (trace.src_ids,), (trace.read_ids,), kind="decoder", layer=0)
        return [found.weights[0, case.picked["head"] - 1, case.picked["query"] - 1].tolist()]
    return []


ROWS = {"one-piece": _one_piece, "one-weight": _one_weight, "masks": _masks}
