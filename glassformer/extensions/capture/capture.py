"""Context manager `capture(model)` for any torch module: attentions seen, their heads and kind, maps, a table.

    with glassformer.capture(model) as seen:
        model(src, tgt)
    print(seen)                                      every attention, by the path of its module
    seen.maps(source=words, target=more).show()      in a notebook

The model may be any `torch.nn.Module`. Nothing of it is changed, and nothing stays on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as hooks

from glassformer.extensions.capture.attention_recorder import AttentionRecorder, Recorded, Running, Scores
from glassformer.extensions.maps.library.given_maps import KINDS, GivenMaps, given_maps
from transformer.errors import MapsError
from transformer.i18n import say
from transformer.model.anatomy import Kind
from transformer.runs.trace import NotebookDisplay

_CROSS = ("cross", "src_attn", "src_attention", "encoder_attn", "encdecattention", "enc_dec", "encoder_decoder",
          "enc_attn", "multihead_attn", "memory", "dec_enc", "inter_attn", "context_attn")  # fmt: skip

_HEADS = ("num_heads", "n_heads", "n_head", "nhead", "heads", "head_num", "num_attention_heads", "h")
_COMPILED = ("OptimizedModule", "RecursiveScriptModule", "ScriptModule")


@dataclass(frozen=True, eq=False)
class CapturedAttention:
    """The attention of one module in one call."""

    path: str  # of the module that computed it, such as "encoder.layers.0.self_attn"; "" for the model itself
    kind: Kind
    call: int  # which call of the model, from 0
    weights: np.ndarray  # float32 [B, H, Q, K]
    closed: np.ndarray  # bool [B, H, Q, K]: cells that a mask closes


@dataclass(eq=False)
class Capture:
    """All attention that calls of a model have computed."""

    attentions: list[CapturedAttention] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was not seen, and why

    def of(self, kind: Kind, *, call: int = -1) -> list[CapturedAttention]:
        """The attentions of a kind in one call, in the order in which they were computed; the last call by default."""
        calls = sorted({one.call for one in self.attentions})
        wanted = calls[call] if calls else 0
        return [one for one in self.attentions if one.kind == kind and one.call == wanted]

    def maps(
        self, *, source: Sequence[str] = (), target: Sequence[str] = (), item: int = 0, call: int = -1, name: str = ""
    ) -> GivenMaps:
        """The maps of one sentence of a batch, for the pages and for `show`; errors as of `transformer.given_maps`.

        Args:
            source: The tokens that the encoder read, or a decoder-only model; their numbers if they are not given.
            target: Those that the decoder read.
            item: Which sentence of the batch, from 0.
            call: Which call of the model.
            name: What the model is called.
        """
        weights: dict[Kind, np.ndarray] = {}
        allowed: dict[Kind, np.ndarray] = {}
        for kind in KINDS:
            found = _alike([one for one in self.of(kind, call=call) if item < len(one.weights)])
            if found:
                weights[kind] = np.stack([one.weights[item] for one in found])
                allowed[kind] = ~np.logical_and.reduce([one.closed[item].all(axis=0) for one in found])
        if not weights:
            why = " ".join(self.notes)
            raise MapsError("no attention was seen; call the model inside the `with` block. {why}", why=why)
        labels = {kind: _labels(kind, one.shape[-2:], source, target) for kind, one in weights.items()}
        each: dict[str, Any] = {str(kind): one for kind, one in weights.items()}
        return given_maps(**each, labels=labels, allowed=allowed, checkpoint=name, sentence=" ".join(source))

    def show(self, picture: str = "attention.overview", **given: Any) -> NotebookDisplay:
        """The maps in a notebook; `given` is as for `maps`."""
        return self.maps(**given).show(picture)

    def _repr_html_(self) -> str:
        return str(self.show()._repr_html_()) if self.attentions else f"<p>{self}</p>"

    def __str__(self) -> str:
        """A table: kind, path, call, shape."""
        if not self.attentions:
            return " ".join([str(say("No attention was seen.")), *self.notes])
        rows = [(one.kind, one.path or "(model)", str(one.call), "×".join(map(str, one.weights.shape)))
                for one in self.attentions]  # fmt: skip
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *self.notes])


@contextmanager
def capture(model: nn.Module) -> Iterator[Capture]:
    """See every softmax attention that calls of a model compute inside the block, in whatever code.

    The weights are those that the code computes, before dropout; of a fused kernel, which makes none, they are computed
    a second time from its queries, keys and mask. Where nothing can be seen of a model that was compiled,
    `Capture.notes` says so.
    """
    seen = Capture()
    paths = {id(module): name for name, module in model.named_modules()}
    running: list[Running] = []
    recorder = AttentionRecorder(running=lambda: running[-1] if running else Running())
    calls = 0

    def enter(module: nn.Module, args: Any) -> None:
        path = paths.get(id(module))
        if path is None:
            return
        if path == "":
            recorder.begin(args)
        running.append(Running(path, recorder.key_of(args), _heads_of(module)))

    def leave(module: nn.Module, args: Any, made: Any) -> None:
        nonlocal calls
        if id(module) not in paths:
            return
        running.pop()
        if paths[id(module)] == "":
            seen.attentions += sorted_out(recorder.found, call=calls, batch=recorder.batch or _batch(args))
            recorder.found.clear()
            calls += 1

    handles = [
        hooks.register_module_forward_pre_hook(enter),
        hooks.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        with recorder:
            yield seen
    finally:
        for handle in handles:
            handle.remove()
        seen.attentions += sorted_out(recorder.found, call=calls, batch=None)
        if not seen.attentions and any(type(one).__name__ in _COMPILED for one in model.modules()):
            said = say(
                "This model was compiled, and what compiled code computes cannot be seen; give the model itself."
            )
            seen.notes.append(str(said))


def _batch(args: Sequence[Any]) -> int | None:
    """The size of the batch, as the first argument's shape says."""
    first = next((one for one in args if isinstance(one, torch.Tensor) and one.dim() > 1), None)
    return None if first is None else len(first)


def _heads_of(module: nn.Module) -> int | None:
    """How many heads a module says that it has."""
    said = (getattr(module, name, None) for name in _HEADS)
    return next((one for one in said if isinstance(one, int) and not isinstance(one, bool) and one > 0), None)


def sorted_out(found: Sequence[Recorded], *, call: int, batch: int | None) -> list[CapturedAttention]:
    """Each attention with its heads and its kind, in order; heads that were computed one by one are put together."""
    ordered = sorted(found, key=lambda one: one.order)
    across = [one.scores for one in ordered if one.scores is not None and one.scores.is_across()]
    memory = frozenset().union(*(one.keys for one in across))
    made: list[CapturedAttention] = []
    for (path, _, _), group in groupby(ordered, key=_of_one_attention):
        together = list(group)
        each = [_with_heads(one, batch) for one in together]
        if len(each) > 1 and all(one[0].shape[1] == 1 for one in each):
            each = [(torch.cat([one[0] for one in each], 1), torch.cat([one[1] for one in each], 1))]
        else:
            path = together[0].place.path
        for weights, closed in each:
            kind = kind_of(path, weights, together[0].scores, memory)
            made.append(CapturedAttention(path, kind, call, weights.numpy(), closed.numpy()))
    return made


def _of_one_attention(one: Recorded) -> tuple[str, int, tuple[int, ...]]:
    """What heads have in common that are computed one by one: in a module, or in modules of a list with one input."""
    above, _, last = one.place.path.rpartition(".")
    return (above if last.isdigit() else one.place.path), one.place.reads, tuple(one.weights.shape)


def _with_heads(one: Recorded, batch: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and closed cells as [B, H, Q, K]."""
    weights, closed = one.weights, one.closed
    if weights.dim() == 2:
        return weights[None, None], closed[None, None]
    if weights.dim() == 3:
        n = len(weights)
        heads = one.heads or one.place.heads
        if heads is None or n % heads:
            heads = n // batch if batch and n % batch == 0 else 1
        return weights.unflatten(0, (-1, heads)), closed.unflatten(0, (-1, heads))
    if weights.dim() > 4:
        return weights.flatten(1, -3), closed.flatten(1, -3)
    return weights, closed


def kind_of(path: str, weights: torch.Tensor, scores: Scores | None, memory: frozenset[int]) -> Kind:
    """Encoder, decoder or cross: by where queries and keys come from, else by shape, mask and the module's name.

    `memory` is where the keys of cross-attention come from, which is what the encoder reads.
    """
    rows, columns = weights.shape[-2:]
    words = path.lower()
    if scores is not None and scores.is_across():
        return "cross"
    if any(word in words for word in _CROSS) or (rows != columns and scores is None):
        return "cross"
    if scores is not None and scores.queries and memory:
        return "encoder" if scores.queries <= memory else "decoder"
    of_later = torch.ones(rows, columns, dtype=torch.bool).triu(1)
    if rows > 1 and not weights[..., of_later].any():
        return "decoder"
    return "decoder" if "decoder" in words and "encoder" not in words else "encoder"


def _alike(found: list[CapturedAttention]) -> list[CapturedAttention]:
    """Those of the most frequent shape: maps have the same rows, columns and heads in every layer."""
    shapes = [one.weights.shape[1:] for one in found]
    most = max(shapes, key=shapes.count, default=None)
    return [one for one in found if one.weights.shape[1:] == most]


def _labels(
    kind: Kind, shape: Sequence[int], source: Sequence[str], target: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Labels of rows and columns: the tokens if there are as many, else numbers."""
    of_rows = source if kind == "encoder" or (kind == "decoder" and not target) else target
    of_columns = source if kind == "cross" else of_rows
    numbers = [tuple(map(str, range(1, count + 1))) for count in shape]
    rows, columns = (
        words if len(words) == count else numbers[axis]
        for axis, (words, count) in enumerate(zip((of_rows, of_columns), shape, strict=True))
    )
    return rows, columns
