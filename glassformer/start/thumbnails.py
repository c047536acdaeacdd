"""What each block of the start page did with the sentence at hand, as a small picture of a few dozen cells.

All numbers are of the run that is drawn, of its first tokens. Plain elements, as the page runs no charts: Streamlit
leaves their classes and styles in place, and the theme gives their colours. Rows of the output come one after the
other, once; whoever prefers no motion sees them at rest (`diagram`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from glassformer.charts.theme import shortened
from glassformer.runs import loading, visible_trace
from glassformer.runs.open_run import OpenRun
from glassformer.server.model_runner import BusyError
from glassformer.shared import cover_box
from glassformer.shared.i18n import here, st
from transformer.analysis import neurons
from transformer.errors import GlassformerError
from transformer.i18n import say
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import Kind, StackName
from transformer.model.sites import sites
from transformer.runs.trace import Trace

MOST_TOKENS: Final = 10
DIMS: Final = 16
NEURONS: Final = 12
BARS: Final = 3
MOST_STEPS: Final = 16  # that the pass goes through, a third of a second each
_FRAME, _BARS = "gf-frame", "gf-bars"  # classes of `diagram`


@dataclass(frozen=True)
class Thumbnail:
    """A thumbnail."""

    alt: str  # what it shows, in a sentence
    body: str  # its elements
    classes: str  # how it is laid out; `diagram` says it
    style: str = ""  # sizes for `diagram`


def draw(run: OpenRun, stack: StackName, block: str) -> None:
    """Draw a block's picture; nothing where there is none, or where a lesson covers something."""
    if cover_box.is_on():
        return
    try:
        picture = _PICTURES[block](run, stack)
    except (GlassformerError, BusyError):  # the page says it where it opens that part
        return
    if picture is None:
        return
    where = f'class="gf-thumb {picture.classes}" style="{picture.style}"'
    st.html(f'<div {where} role="img" aria-label="{escape(here(picture.alt))}">{picture.body}</div>')


# ------------------------------------------------------------------------------------------------ vectors


def _recorded(run: OpenRun, stack: StackName, site: str) -> np.ndarray | None:
    """What the run had there at its first tokens [token, number]; None where it is not cheap, or no such site is."""
    if not run.trace.keeps_maps or site not in sites(run.checkpoint.config):
        return None
    return loading.replay(run.checkpoint, run.trace, [site])[site][: _shown(run, stack)]


def _shown(run: OpenRun, stack: StackName) -> int:
    """Tokens that are drawn: none of the padding, and in class none that is still to come."""
    trace = run.trace
    return min(MOST_TOKENS, trace.n_tokens("encoder") if stack == "encoder" else run.visible.n_rows)


def _embedding(run: OpenRun, stack: StackName) -> Thumbnail | None:
    alt = say("The first {n} numbers of each piece's embedding, one row per piece.", n=DIMS)
    return _stripes(_recorded(run, stack, f"{stack}.embedding.tokens"), alt)


def _positions(run: OpenRun, stack: StackName) -> Thumbnail | None:
    alt = say("The first {n} numbers of each position vector, one row per position.", n=DIMS)
    return _stripes(_recorded(run, stack, f"{stack}.embedding.positions"), alt)


def _ffn(run: OpenRun, stack: StackName) -> Thumbnail | None:
    found = _recorded(run, stack, neurons.site(stack, 0, "activation"))
    if found is None:
        return None
    chosen = neurons.most_active_anywhere(found, NEURONS)
    alt = say("Activations of the {n} most active neurons of layer 1, one row per piece.", n=len(chosen))
    return _stripes(np.abs(found[:, chosen]), alt)


def _stripes(found: np.ndarray | None, alt: str) -> Thumbnail | None:
    if found is None:
        return None
    values = found[:, :DIMS]
    low, high = float(values.min()), float(values.max())
    return _cells((values - low) / max(high - low, 1e-9), alt)


# ------------------------------------------------------------------------------------------------ maps


def _attention(run: OpenRun, stack: StackName) -> Thumbnail | None:
    n = _shown(run, stack)
    alt = say("Self-attention weights, averaged over all layers and heads: one row per query, one column per key.")
    return _map(run, "encoder" if stack == "encoder" else "decoder", n, n, alt)


def _cross(run: OpenRun, stack: StackName) -> Thumbnail | None:
    alt = say(
        "Cross-attention weights, averaged over all layers and heads: one row per output step, one column per "
        "source piece."
    )
    return _map(run, "cross", _shown(run, "decoder"), _shown(run, "encoder"), alt)


def _map(run: OpenRun, kind: Kind, n_queries: int, n_keys: int, alt: str) -> Thumbnail | None:
    if not run.trace.keeps_maps:
        return None
    weights = np.mean(run.visible.each(kind, visible_trace.mean, key="mean"), axis=0)[:n_queries, :n_keys]
    writing = kind != "encoder" and not run.view.guess
    first = run.trace.first_row if writing else None
    return _cells(weights / max(float(weights.max()), 1e-9), alt, first=first, source=kind == "cross")


def _mask(run: OpenRun, stack: StackName) -> Thumbnail:
    n = _shown(run, stack)
    may = run.trace.mask("decoder")[:n, :n]
    alt = say("The causal mask: hatched cells are keys that a query may not see.")
    return _cells(may.astype(float), alt, mask=may)


def _cells(
    shades: np.ndarray, alt: str, *, first: int | None = None, source: bool = False, mask: np.ndarray | None = None
) -> Thumbnail:
    """Cells as dark as their numbers, from 0 to 1 [row, column].

    `first` is the row of the first output step, where rows come one after the other. With `source` the columns are
    source pieces; what the mask does not have open is hatched.
    """
    body = []
    for row, line in enumerate(shades.tolist()):
        late = f";{_when(row - first)}" if first is not None and row >= first else ""
        for column, shade in enumerate(line):
            closed = ' class="gf-closed"' if mask is not None and not mask[row, column] else ""
            body.append(f'<i{closed} style="--v:{shade:.2f}{late}"></i>')
    classes = f"gf-cells{' gf-of-source' * source}{' gf-passing' * (first is not None)}"
    return Thumbnail(alt, "".join(body), classes, f"--columns:{shades.shape[1]}")


# ------------------------------------------------------------------------------------------------ the output


def _output(run: OpenRun, stack: StackName) -> Thumbnail | None:
    trace = run.trace
    if run.view.guess or not trace.n_steps:
        return None
    step = trace.n_steps - 1  # at rest the whole output is written, and so is the last step
    best = trace.step(step, top_k=1).candidates[0]
    alt = say("Step {n}: the likeliest next piece is “{piece}”, p = {p}.", n=step + 1, piece=best.piece,
              p=hundredths(best.probability))  # fmt: skip
    passing = (_bars(trace, one, _FRAME, _when(one)) for one in range(min(trace.n_steps, MOST_STEPS)))
    at_rest = _bars(trace, step, f"{_FRAME} gf-at-rest", _when(min(trace.n_steps, MOST_STEPS)))
    return Thumbnail(alt, "".join([*passing, at_rest]), f"{_BARS} gf-passing")


def _bars(trace: Trace, step: int, classes: str, late: str) -> str:
    """The likeliest pieces of a step."""
    lines = [
        f'<span style="--p:{one.probability:.3f}">{escape(shortened(one.piece, limit=7))}</span>'
        f"<b>{escape(hundredths(one.probability))}</b>"
        for one in trace.step(step, top_k=BARS).candidates[:BARS]
    ]
    return f'<div class="{classes}" style="{late}">{"".join(lines)}</div>'


def _when(step: int) -> str:
    return f"--n:{min(step, MOST_STEPS)}"


_PICTURES: Final[dict[str, Callable[[OpenRun, StackName], Thumbnail | None]]] = {
    "embedding": _embedding,
    "positions": _positions,
    "self_attn": _attention,
    "mask": _mask,
    "cross_attn": _cross,
    "ffn": _ffn,
    "output": _output,
}
