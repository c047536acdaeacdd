"""Masks of a padded batch, also as hooks change them; causality and padding checks that compare two runs.

`batch_masks` asks the model for its masks. The two checks run the model twice and compare logits: causality (a later
target piece changes, earlier rows must not move) and padding (pads are added, no row may move). Each check also runs
with the mask removed through a tap, to show what the mask prevents.

Ids are nested tuples, as traces hold them; results are plain arrays. Axes: B batch, H heads, Q queries, K keys,
S source tokens, T target tokens, V target vocabulary. Source: Vaswani et al. (2017), section 3.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Kind
from transformer.model.config import ModelConfig
from transformer.model.masks import causal_mask, padding_mask, within
from transformer.model.taps import NO_TAP, Recorder, Replacer, Tap, both, tap_of
from transformer.runs.recording_pass import check_recorded
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

Ids = tuple[tuple[int, ...], ...]
MaskName = Literal["source", "target", "causal", "decoder", "cross"]

ROUNDING_STEPS = 16
"""How many times the spacing of float32 numbers a difference may be and still count as rounding.

A sum that is taken in another order is off by a few spacings of its largest term; a dozen such sums follow each
other between a mask and the logits. The shipped checkpoints stay below 8.
"""


@dataclass(frozen=True)
class BatchMasks:
    """The masks of one batch, bool, True = may attend, each at its own shape."""

    source: np.ndarray  # source padding [B, 1, 1, S], for the encoder
    target: np.ndarray  # target padding [B, 1, 1, T]
    causal: np.ndarray  # [1, 1, T, T]
    decoder: np.ndarray  # target padding and causal together [B, 1, T, T], as decoder self-attention takes it
    cross: np.ndarray  # [B, 1, 1, S], for cross-attention: the same source padding, seen from the target's queries
    # Only those that this model uses.
    names: tuple[MaskName, ...] = get_args(MaskName)

    def own(self, name: MaskName) -> np.ndarray:
        """A mask at its own shape; a QueryError if the model does not use it."""
        if name not in self.names:
            raise QueryError(
                "this model has no mask named {name}; its masks are {names}.",
                name=repr(name),
                names=", ".join(self.names),
            )
        return getattr(self, name)

    def whole(self, name: MaskName) -> np.ndarray:
        """A mask broadcast over batch and queries [B, Q, K]; every head gets the same."""
        n_batch, n_src, n_tgt = len(self.source), self.source.shape[-1], self.target.shape[-1]
        n_queries = n_src if name == "source" else n_tgt
        n_keys = n_src if name in ("source", "cross") else n_tgt
        return np.broadcast_to(self.own(name)[:, 0], (n_batch, n_queries, n_keys))


@torch.inference_mode()
def batch_masks(model: Transformer, src_ids: Ids, tgt_ids: Ids) -> BatchMasks:
    """The model's masks for a batch of padded ids, of the source [B, S] and of the target [B, T]."""
    src, tgt = torch.tensor(src_ids), torch.tensor(tgt_ids)
    parts = model.anatomy
    used = {"source": parts.reads, "cross": "cross" in parts.kinds}
    target = padding_mask(tgt, pad_id=model.config.pad_id)
    target[..., :1] = True  # as in Transformer.target_mask: the start id is read even where it is the padding id
    source = model.source_mask(src).numpy(force=True)
    return BatchMasks(
        source=source,
        target=target.numpy(),
        causal=causal_mask(tgt.size(1)).numpy(),
        decoder=model.target_mask(tgt).numpy(force=True),
        cross=source,
        names=tuple(name for name in get_args(MaskName) if used.get(name, parts.writes)),
    )


@torch.inference_mode()
def changed_masks(model: Transformer, src_ids: Ids, tgt_ids: Ids, tap: Tap) -> BatchMasks:
    """The same as `tap` changes them: as the first layers get them when everything is read in one pass.

    While a model writes, no row gets its mask for later tokens, as there are none.
    """
    own, src, tgt = batch_masks(model, src_ids, tgt_ids), torch.tensor(src_ids), torch.tensor(tgt_ids)
    kinds: dict[MaskName, Kind] = {"source": "encoder", "decoder": "decoder", "cross": "cross"}
    sites = {name: model.anatomy.attention(kind).site(0, "mask") for name, kind in kinds.items() if name in own.names}

    def passed(changes: Tap) -> dict[MaskName, np.ndarray]:
        recorder = Recorder(sites.values())
        _result(model, src, tgt, both(changes, tap_of(recorder)))
        there = {name: recorder.values[site] for name, site in sites.items() if site in recorder.values}
        return {name: mask[:, :1].numpy(force=True) for name, mask in there.items()}

    before, after = passed(NO_TAP), passed(tap)
    masks: Any = {name: np.where(before[name] != mask, mask, own.own(name)) for name, mask in after.items()}
    if model.anatomy.writes:
        masks["causal"] = tap.child("decoder").setting("causal", causal_mask(tgt.size(1))).numpy(force=True)
        padding = tap.child("decoder").setting("padding", torch.tensor(own.target)).numpy(force=True)
        masks["target"] = np.broadcast_to(padding, (*padding.shape[:-1], tgt.size(1)))
    return replace(own, **masks)


def additive(mask: np.ndarray) -> np.ndarray:
    """The same mask as numbers to add to the scores: 0 where open, -inf where closed; float32."""
    return np.where(mask, np.float32(0), np.float32(-np.inf))


@dataclass(frozen=True)
class Movement:
    """How far the logits of each target row moved between two runs: max |difference| over the vocabulary.

    An encoder-only model has no logits: its rows are the vectors of the source, compared over their dimensions.
    """

    kept: np.ndarray  # with the mask, [row], float32
    taken: np.ndarray  # with the mask taken away in both runs, [row], float32
    largest: float  # the largest |number| of the first run: it says how coarse float32 is there
    elsewhere: float = 0.0  # the most that a row of another sentence of the batch moved, with the mask

    @property
    def spacing(self) -> float:
        """Distance between neighbouring float32 numbers at the size of the largest value."""
        return float(np.spacing(np.float32(self.largest)))

    @property
    def rounding(self) -> float:
        """The largest difference that counts as rounding."""
        return ROUNDING_STEPS * self.spacing


@torch.inference_mode()
def check_causality(
    model: Transformer, src_ids: Ids, tgt_ids: Ids, *, sentence: int, place: int, piece_id: int
) -> Movement:
    """Change one target piece of one sentence and see which rows move.

    The rows of that sentence before `place`, from 0, must not move, nor those of other sentences. Without the causal
    mask, only padding limits what decoder self-attention sees. A QueryError says that there is no such place, that
    the model has no decoder, or that it computes a value that is not finite.
    """
    own = model.anatomy.attention("decoder")
    if not 0 <= sentence < len(tgt_ids) or not 0 <= place < len(tgt_ids[sentence]):
        raise QueryError("sentence {sentence} has no target token {place}.", sentence=sentence + 1, place=place + 1)
    src, before = torch.tensor(src_ids), torch.tensor(tgt_ids)
    after = before.clone()
    after[sentence, place] = piece_id
    padding = padding_mask(before, pad_id=model.config.pad_id)
    blind = tap_of(Replacer({own.site("*", "mask"): lambda mask: padding.to(mask.device).expand_as(mask)}))
    logits = _finite(model, src, before)  # [B, T, V]
    moved = _moved(logits, model(src, after))  # [B, T]
    others = [row for i, row in enumerate(moved) if i != sentence]
    return Movement(
        kept=moved[sentence].numpy(),
        taken=_moved(model(src, before, tap=blind), model(src, after, tap=blind))[sentence].numpy(),
        largest=float(logits[sentence].abs().max()),
        elsewhere=float(torch.stack(others).max()) if others else 0.0,
    )


@dataclass(frozen=True)
class PaddingMovement:
    """How far pads move the logits of one sentence, for each side that a stack reads."""

    # Pads after the source; `taken` is without the source padding mask. None without an encoder.
    source: Movement | None
    # Pads after the target; `taken` is without the target padding mask, the causal mask kept. None without a decoder.
    target: Movement | None


@torch.inference_mode()
def check_padding(
    model: Transformer, src_ids: Sequence[int], tgt_ids: Sequence[int], *, n_pads: int
) -> PaddingMovement:
    """Add pads to one sentence, once to the source and once to the target, and see how far its own rows move.

    The ids [S] and [T] are without padding. A QueryError says that the model has no padding piece, that a side with
    the pads is too long for it, or that it computes a value that is not finite.
    """
    parts = model.anatomy
    if model.config.pad_id is None:
        raise QueryError("This model has no padding token and therefore no padding mask, so there is nothing to check.")
    src, tgt = torch.tensor([src_ids]), torch.tensor([tgt_ids])
    pads = torch.full((1, n_pads), model.config.pad_id)
    before = _finite(model, src, tgt)  # [1, T, V], or [1, S, D] if encoder-only
    of_source = [one.site("*", "mask") for one in parts.attentions if one.keys_from == "encoder"]
    see_pads = tap_of(Replacer(dict.fromkeys(of_source, torch.ones_like)))
    only_causal = tap_of(Replacer(_without_padding(model)))

    def moved(src: Tensor, tgt: Tensor, without: Tap) -> Movement:
        kept, taken = (_moved(before, _result(model, src, tgt, tap)[:, : before.size(1)]) for tap in (NO_TAP, without))
        return Movement(kept[0].numpy(), taken[0].numpy(), largest=float(before.abs().max()))

    return PaddingMovement(
        source=moved(torch.cat((src, pads), dim=1), tgt, see_pads) if parts.reads else None,
        target=moved(src, torch.cat((tgt, pads), dim=1), only_causal) if parts.writes else None,
    )


def _without_padding(model: Transformer) -> dict[str, Callable[[Tensor], Tensor]]:
    """What makes of each causal attention's mask one that closes the future, and what a window does, but no pads."""

    def unpadded(window: int) -> Callable[[Tensor], Tensor]:
        def whole(mask: Tensor) -> Tensor:
            n = mask.size(-1)
            seen = within(causal_mask(n, device=mask.device), window, n, device=mask.device)
            assert seen is not None  # as a mask went in
            return seen.expand_as(mask)

        return whole

    return {
        one.site(layer, "mask"): unpadded(model.config.window(layer))
        for one in model.anatomy.attentions
        if one.causal
        for layer in range(one.n_layers)
    }


def _finite(model: Transformer, src: Tensor, tgt: Tensor) -> Tensor:
    """What a pass ends with; an error where it is not finite."""
    result = _result(model, src, tgt, NO_TAP)
    check_recorded((result,), lambda tap: _result(model, src, tgt, tap), tap=NO_TAP)
    return result


def _result(model: Transformer, src: Tensor, tgt: Tensor, tap: Tap) -> Tensor:
    """The logits [B, T, V]; of an encoder-only model its memory [B, S, D], whatever head it has."""
    return model(src, tgt, tap=tap) if model.anatomy.writes else model.encode(src, tap=tap)


def _moved(before: Tensor, after: Tensor) -> Tensor:
    """Max |difference| over the vocabulary or a vector: two [B, T, V] -> [B, T]."""
    return (after - before).abs().amax(dim=-1).cpu()


def another_piece(trace: Trace, place: int, *, config: ModelConfig) -> int:
    """For the causality check, the id of the most probable other ordinary piece at a place of the decoder's input.

    Token 0 is the start piece. Within a prompt nothing was predicted: there it is the least probable piece after the
    prompt, because the most probable one may be what a reader has to guess.
    """
    step = place - 1 - trace.first_row
    log_probs = trace.log_probs[step].copy() if step >= 0 else -trace.log_probs[0]
    specials = (config.unk_id, config.bos_id, config.decoder_start_id, *config.end_ids, *config.never_written)
    log_probs[[trace.read_ids[place], *(i for i in specials if i is not None)]] = -np.inf
    return int(log_probs.argmax())
