"""Labels and texts of the "Logit" part: names of logit parts, grid positions, sums."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from glassformer.extensions.effects.attribution.held_run import LogitPart
from glassformer.extensions.effects.attribution.parts import Contributions
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.runs.viewed_run import ViewedRun
from transformer.i18n import Sentence, joined, paragraph, say
from transformer.model.anatomy import Kind, Sublayer, anatomy
from transformer.model.config import ModelConfig

SMALL: Final = 1e-4
"""A remainder below this is rounding."""
ROUNDING: Final = 1e-6
"""So is one below this share of all parts together: a run without norms has logits of many thousands."""

_OUTSIDE: Final[dict[str, tuple[Sentence, Sentence]]] = {
    "tokens": (say("Embedding of the token read last"), say("Embedding")),
    "positions": (say("Its position"), say("Position")),
    "embedding_norm": (say("β of the embedding's norm"), say("Embedding β")),
    "final_norm": (say("β of the final norm"), say("Final norm β")),
    "output_bias": (say("Bias of the output layer"), say("Output bias")),
    "types": (say("Token type"), say("Token type")),
    "bias": (say("Biases and other constants"), say("Biases")),
    "changed": (say("Added to the stream by a change to the model"), say("Change")),
}


def part_names(part: LogitPart) -> tuple[str, str]:
    """A part in words, and short on an axis, where heads go by layer and head."""
    if part.layer is None:
        return _OUTSIDE[part.kind]
    layer, head, bias = part.layer + 1, (part.head or 0) + 1, say("Bias {layer}", layer=part.layer + 1)
    norm, changed = say("Norm {layer}", layer=layer), say("Changed {layer}", layer=layer)
    match part.kind, part.sublayer:
        case "head", "cross_attn":
            name = say("Layer {layer}, cross-attention, head {head}", layer=layer, head=head)
            return name, say("Cross {layer}.{head}", layer=layer, head=head)
        case "head", _:
            name = say("Layer {layer}, self-attention, head {head}", layer=layer, head=head)
            return name, say("Self {layer}.{head}", layer=layer, head=head)
        case "ffn", _:
            return say("Layer {layer}, feed-forward", layer=layer), say("FFN {layer}", layer=layer)
        case "ffn_bias", _:
            return say("Layer {layer}, feed-forward bias", layer=layer), bias
        case "attention", "cross_attn":
            return say("Layer {layer}, cross-attention (changed)", layer=layer), changed
        case "attention", _:
            return say("Layer {layer}, self-attention (changed)", layer=layer), changed
        case "attention_bias", "cross_attn":
            return say("Layer {layer}, cross-attention bias", layer=layer), bias
        case "attention_bias", _:
            return say("Layer {layer}, self-attention bias", layer=layer), bias
        case "norm", "cross_attn":
            return say("Layer {layer}, β of the cross-attention norm", layer=layer), norm
        case "norm", "self_attn":
            return say("Layer {layer}, β of the self-attention norm", layer=layer), norm
        case "norm", _:
            return say("Layer {layer}, β of the feed-forward norm", layer=layer), norm
        case _:
            return say("Layer {layer}, added by a change to the model", layer=layer), changed


# ------------------------------------------------------------------------------------------------ where they stand


_Column = tuple[str, Sublayer | None, int | None]
_ABOVE: Final[dict[Sublayer, str]] = {
    "self_attn": say("Self", about="attention, over its heads"),
    "cross_attn": say("Cross", about="attention, over its heads"),
}


@dataclass(frozen=True, eq=False)
class Grid:
    """The parts as a map."""

    rows: list[str]  # what they are called
    # Two header lines each: attention and head; the attention over its first head.
    columns: list[tuple[str, str]]
    values: np.ndarray  # `[row, column]`; NaN where there is no part. Several in one cell are added.
    names: list[list[str]]  # what is in each cell
    heads: dict[tuple[int, int], tuple[Kind, int, int]]  # the attention, layer and head of each cell that is a head

    def cell_of(self, kind: Kind, layer: int | None, head: int | None) -> tuple[int, int] | None:
        """The cell of a head, if it has one."""
        return next((cell for cell, found in self.heads.items() if found == (kind, layer, head)), None)


def grid_of(config: ModelConfig, parts: Sequence[LogitPart], values: np.ndarray) -> Grid:
    """Arrange the parts, by what each adds [part]."""
    n_layers = anatomy(config).stack("decoder").n_layers
    rows: list[str] = [say("Embedding"), *(say("Layer {n}", n=n + 1) for n in range(n_layers)), say("Output")]
    columns = _columns(config, n_heads=1 + max((part.head or 0 for part in parts), default=0))
    shown = np.full((len(rows), len(columns)), np.nan)
    names: list[list[list[str]]] = [[[] for _ in columns] for _ in rows]
    heads: dict[tuple[int, int], tuple[Kind, int, int]] = {}
    keys = list(columns)
    for part, value in zip(parts, values, strict=True):
        cell = _row(part, n_layers), keys.index(_column(part))
        shown[cell] = np.nan_to_num(shown[cell]) + value
        names[cell[0]][cell[1]].append(part_names(part)[0])
        if (head := part.as_head) is not None:
            heads[cell] = head
    return Grid(rows, list(columns.values()), shown, [[joined(", ", cell) for cell in row] for row in names], heads)


def _columns(config: ModelConfig, *, n_heads: int) -> dict[_Column, tuple[str, str]]:
    found: dict[_Column, tuple[str, str]] = {}
    for part in anatomy(config).stack("decoder").sublayers:
        if part == "ffn":
            found["ffn", None, None] = (say("FFN"), "")
            continue
        for head in range(n_heads):
            found["head", part, head] = (_ABOVE[part] if head == 0 else "", str(head + 1))
    return found | {("other", None, None): (say("Other", about="parts of a sum"), "")}


def _column(part: LogitPart) -> _Column:
    if part.kind == "head":
        return "head", part.sublayer, part.head
    return ("ffn", None, None) if part.kind == "ffn" else ("other", None, None)


def _row(part: LogitPart, n_layers: int) -> int:
    if part.layer is not None:
        return part.layer + 1
    return n_layers + 1 if part.kind in ("final_norm", "output_bias") else 0


# ------------------------------------------------------------------------------------------------ in words


def rival_of(run: ViewedRun) -> int | None:
    """The piece that is compared with; None for none, and where it is the piece that was written."""
    asked = run.view.of(EffectsLook).rival
    written = run.trace.tgt_ids[run.view.step]
    return asked if asked is not None and asked < len(run.trace.vocabulary) and asked != written else None


def whose_logit(run: ViewedRun) -> str:
    """The title: whose logit is taken apart."""
    step, rival = run.view.step, rival_of(run)
    piece = run.trace.tgt_tokens[step]
    if rival is None:
        return say("Step {step}: contributions to the logit of {piece}", step=step + 1, piece=piece)
    other = run.trace.vocabulary[rival]
    return say("Step {step}: what favours {piece} over {other}", step=step + 1, piece=piece, other=other)


def sums(run: ViewedRun, found: Contributions, values: np.ndarray) -> str:
    """The sum, what the model computed, the remainder, and what each kind of part adds."""
    n, total, size = len(values), float(values.sum()), float(np.abs(found.values).sum(axis=1).max())
    if rival_of(run) is None:
        whole, capped = float(found.logits[0]), float(found.capped[0])
        said = say("The {n} parts add up to {total:.4f}; the logit that the model computed is {whole:.4f}.", n=n,
                   total=total, whole=whole)  # fmt: skip
    else:
        whole, capped = (float(both[0] - both[1]) for both in (found.logits, found.capped))
        said = say("The {n} parts add up to {total:.4f}; the difference between the two logits that the model "
                   "computed is {whole:.4f}.", n=n, total=total, whole=whole)  # fmt: skip
    return joined(" ", [said, _remainder(whole - total, capped, size), _by_kind(found, values)])


def _remainder(left: float, capped: float, size: float) -> str:
    """What is left, for parts that are of this size together."""
    small = max(SMALL, ROUNDING * size)
    if abs(left) < small:
        return say("The remainder, {left:.1e}, is rounding error.", left=left)
    if capped and abs(left - capped) < small:
        return say(
            "The remainder, {left:+.4f}, is the effect of the cap on the logits, which cannot be split among the "
            "parts.",
            left=left,
        )
    return say(
        "The remainder is {left:+.4f}, because this run is changed in places that the chart does not show.", left=left
    )


def _by_kind(found: Contributions, values: np.ndarray) -> str:
    def total(belongs: Callable[[LogitPart], bool]) -> float:
        return float(sum(value for part, value in zip(found.parts, values, strict=True) if belongs(part)))

    attention = total(lambda p: p.sublayer == "self_attn" and p.kind in ("head", "attention"))
    ffn = total(lambda p: p.kind == "ffn")
    embedding = total(lambda p: p.kind in ("tokens", "positions"))
    cross = total(lambda p: p.sublayer == "cross_attn" and p.kind in ("head", "attention"))
    rest = float(values.sum()) - attention - ffn - embedding - cross
    if not any(part.sublayer == "cross_attn" for part in found.parts):
        return say("By kind of part: embedding {embedding:+.2f}, self-attention {attention:+.2f}, feed-forward "
                   "{ffn:+.2f}, biases and norms {rest:+.2f}.", embedding=embedding, attention=attention, ffn=ffn,
                   rest=rest)  # fmt: skip
    return say("By kind of part: embedding {embedding:+.2f}, self-attention {attention:+.2f}, cross-attention "
               "{cross:+.2f}, feed-forward {ffn:+.2f}, biases and norms {rest:+.2f}.", embedding=embedding,
               attention=attention, cross=cross, ffn=ffn, rest=rest)  # fmt: skip


@paragraph
def what_it_is(run: ViewedRun) -> Iterator[str]:
    """How parts are found, and what they cannot show."""
    config = run.checkpoint.config
    if config.norm_kind == "none":
        how = say(
            "Each part's contribution is the dot product of its vector with the token's row in the output layer's "
            "matrix. The logit is computed from the stream in the same way."
        )
    elif config.norm == "post":
        how = say(
            "Each part's vector goes through the norms after it, and each norm divides by the same number as in "
            "this run. The contribution is the dot product of the result with the token's row in the output "
            "layer's matrix."
        )
    else:
        how = say(
            "Each part's vector goes through the final norm, which divides by the same number as in this run. The "
            "contribution is the dot product of the result with the token's row in the output layer's matrix."
        )
    yield how
    yield say(
        "Direct contributions do not show indirect paths. Later layers also read what a part writes, so even a "
        "part whose direct contribution is 0 may decide the output."
    )
    if "encoder" in run.trace.kinds:
        yield say("The encoder contributes only through cross-attention.")
    if not config.residual:
        yield say("This model has no residual stream, so only its last sub-layer contributes directly.")
    yield say("Elhage et al. (2021), “Handling Layer Normalization”.")
