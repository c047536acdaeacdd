"""What each component of the loaded model holds and does, for the sentence at hand and for any length."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

import charts
from charts.costs import HOW_TO_READ_CURVES, HOW_TO_READ_SHARES
from transformer.analysis import costs
from transformer.analysis.costs import Holding, Part
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing

SHARES = "cost_shares"
CURVES = "cost_curves"
LENGTH = "cost_length"
TABLE = "cost_table"
CSV = "cost_csv"
FURTHEST = 4096  # tokens up to which lengths are counted, whatever the model reads
_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
          8192, 16_384, 32_768)  # fmt: skip

NAMES: dict[Part, str] = {
    "source_embedding": "Source embedding",
    "target_embedding": "Target embedding",
    "positions": "Positions",
    "encoder_projections": "Encoder self: projections",
    "encoder_maps": "Encoder self: n² part",
    "encoder_ffn": "Encoder feed-forward",
    "decoder_projections": "Decoder self: projections",
    "decoder_maps": "Decoder self: n² part",
    "cross_projections": "Cross: projections",
    "cross_maps": "Cross: n² part",
    "decoder_ffn": "Decoder feed-forward",
    "norms": "Norms",
    "output": "Output layer",
}
_PROJECTIONS = "Make queries, keys and values (q_proj, k_proj, v_proj), and join the heads (out_proj)"
_MAPS = "q·k for the scores, weights·v for the sums"
_FFN = "Widen each token to d_ff, then back"
_ROLES: dict[Part, str] = {
    "source_embedding": "A vector for each source piece: looked up, not multiplied",
    "target_embedding": "A vector for each target piece: looked up, not multiplied",
    "positions": "A vector for each position: added",
    "encoder_projections": _PROJECTIONS,
    "encoder_maps": _MAPS,
    "encoder_ffn": _FFN,
    "decoder_projections": _PROJECTIONS,
    "decoder_maps": _MAPS,
    "cross_projections": f"{_PROJECTIONS}: queries of the target, keys and values of the source",
    "cross_maps": _MAPS,
    "decoder_ffn": _FFN,
    "norms": "Mean 0 and variance 1 for each token; the last one ends a stack",
    "output": "A score for every target piece",
}
_GROUPS = {"projections": "Attention projections", "ffn": "Feed-forward", "output": "Output layer"}


def draw(run: OpenRun) -> None:
    """Draw the sums, the table, and what a length does."""
    config = run.checkpoint.config
    n_source = len(run.trace.src_ids)
    n_target = run.looking.n_rows if run.view.guess else run.trace.n_steps
    held = costs.holdings(run.checkpoint.model)
    st.subheader("Parameters and multiply-adds")
    st.markdown(drawing.plain(sums(run.checkpoint.model, held, n_source=n_source, n_target=n_target)))
    n = _choose_length(run, n_source, n_target)
    at_n = costs.multiply_adds(config, n_source=n, n_target=n)
    now = costs.multiply_adds(config, n_source=n_source, n_target=n_target)
    left, right = st.columns(2, gap="large")
    with left:
        _shares(run, held, at_n, n)
    with right:
        _curves(run, n)
    st.markdown(drawing.plain(where_it_overtakes(config)))
    _table(run, held, now, at_n, n=n, lengths=f"{tokens(n_source, 'source')} and {tokens(n_target, 'target')}")


def sums(model: Transformer, held: dict[Part, Holding], *, n_source: int, n_target: int) -> str:
    """All parameters, what is kept but not learned, and all multiply-adds of this sentence.

    Args:
        model: The model.
        held: Its `holdings`.
        n_source, n_target: Tokens on each side.
    """
    config = model.config
    total = sum(one.parameters for one in held.values())
    done = sum(costs.multiply_adds(config, n_source=n_source, n_target=n_target).values())
    said = [f"{total:,} parameters in all; a table that two components share counts once."]
    kept = costs.buffers(model)
    if kept:
        values = sum(rows * columns for rows, columns in kept.values())
        shapes = " and ".join(f"{rows:,} × {columns:,}" for rows, columns in kept.values())
        said.append(f"Not among them: {values:,} values in buffers ({shapes}), the sinusoids, which are a formula.")
    else:
        said.append("There are no buffers: everything that is kept is learned.")
    said.append(
        f"One pass over this sentence, {tokens(n_source, 'source')} and {tokens(n_target, 'target')}, takes {done:,} "
        "multiply-adds. Matrix products are counted, the half of a decoder map that the mask hides too; norms, "
        "softmax, activation, biases and sums are not."
    )
    return " ".join(said)


def tokens(count: int, side: str) -> str:
    """A number of tokens in words."""
    return f"{count:,} {side} token{'s' * (count != 1)}"


def where_it_overtakes(config: ModelConfig) -> str:
    """From which length on the n² part is the larger one, and what that means for what the model reads."""
    all_linear, alone = costs.overtakes(config), costs.overtakes(config, parts=costs.PROJECTIONS)
    share = _maps_share(config, config.max_len)
    said = (
        f"With n tokens on both sides the n² part takes {all_linear.quadratic:,}·n² multiply-adds and all the rest "
        f"{all_linear.linear:,}·n. So the n² part is the larger one from n = {all_linear.n:,} on "
        f"(n > {all_linear.linear / all_linear.quadratic:,.1f}); it overtakes the attention projections alone at "
        f"n = {alone.n:,}, just above 2·d_model = {2 * config.d_model:,}. "
    )
    if all_linear.n > config.max_len:
        return said + (
            f"This model reads at most {config.max_len:,} tokens, where the n² part is {share:.1%} of the work: what "
            "lies beyond is arithmetic, no run."
        )
    return said + f"At the {config.max_len:,} tokens that this model reads at most it is {share:.1%} of the work."


def _maps_share(config: ModelConfig, n: int) -> float:
    counts = costs.multiply_adds(config, n_source=n, n_target=n)
    return costs.grouped(counts)["maps"] / sum(counts.values())


def lengths(config: ModelConfig, current: int) -> list[int]:
    """The lengths that can be chosen: round ones, the current one, the longest, and where the n² part overtakes."""
    last = max(FURTHEST, config.max_len)
    special = {current, config.max_len, costs.overtakes(config).n}
    return sorted({n for n in (*_STEPS, *special) if n <= last})


def _choose_length(run: OpenRun, n_source: int, n_target: int) -> int:
    config, current = run.checkpoint.config, max(n_source, n_target)
    whose = "this sentence" if n_source == n_target else "this sentence's longer side"
    remarks = {costs.overtakes(config).n: "n² overtakes", config.max_len: "longest", current: whose}
    return choices.scale(
        choices.field(run.slot, "tokens", key=LENGTH),
        "Tokens on each side, n",
        {n: f"{n:,} ({remarks[n]})" if n in remarks else f"{n:,}" for n in lengths(config, current)},
        otherwise=current,
        help=f"Source and target get the same length. Beyond {config.max_len:,} tokens, the most that this model "
        "reads, the counts are arithmetic.",
    )


def _shares(run: OpenRun, held: dict[Part, Holding], done: dict[Part, int], n: int) -> None:
    parts = [part for part in costs.PARTS if held[part].parameters or done[part]]
    figure = charts.cost_shares_spec(
        [NAMES[part] for part in parts],
        [held[part].parameters for part in parts],
        [done[part] for part in parts],
        title=f"Shares of components at n = {n:,}",
    )
    alt = f"Each component's share of parameters and of multiply-adds at {n} tokens on each side."
    drawing.chart(figure, key=run.key(SHARES), alt=alt, how_to_read=HOW_TO_READ_SHARES)


def _curves(run: OpenRun, n: int) -> None:
    config = run.checkpoint.config
    last = max(FURTHEST, config.max_len)
    places = sorted({round(2 ** (step / 4)) for step in range(61) if 2 ** (step / 4) < last} | {n, last})
    counts = [costs.grouped(costs.multiply_adds(config, n_source=one, n_target=one)) for one in places]
    crossing = costs.overtakes(config)
    figure = charts.cost_curves_spec(
        places,
        {name: [count[group] for count in counts] for group, name in _GROUPS.items()},
        quadratic=[count["maps"] for count in counts],
        linear=[sum(count.values()) - count["maps"] for count in counts],
        crossing=crossing.linear / crossing.quadratic,
        max_len=config.max_len,
        chosen=n,
        title="Multiply-adds by length",
    )
    alt = f"Multiply-adds of the n² part and of the linear parts from 1 to {last:,} tokens on each side."
    drawing.chart(figure, key=run.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES)


def frame(held: dict[Part, Holding], now: dict[Part, int], at_n: dict[Part, int], *, n: int) -> pd.DataFrame:
    """One row a component, and one for all of them.

    Args:
        held: Parameters.
        now: Multiply-adds of the sentence.
        at_n: Multiply-adds at the chosen length.
        n: That length.
    """
    totals = (sum(one.parameters for one in held.values()), sum(now.values()), sum(at_n.values()))
    rows = []
    for part, one in held.items():
        counts = (one.parameters, now[part], at_n[part])
        pairs = [value for count, total in zip(counts, totals, strict=True) for value in (count, 100 * count / total)]
        rows.append((NAMES[part], *pairs, _ROLES[part], tensors(one)))
    rows.append(("All", *(value for total in totals for value in (total, 100.0)), "", ""))
    counted = ["Parameters", "Multiply-adds, this sentence", f"Multiply-adds, n = {n}"]
    names = [name for count in counted for name in (count, f"Share of {count[0].lower()}{count[1:]} (%)")]
    return pd.DataFrame(rows, columns=["Component", *names, "Role", "Tensors"])


def tensors(one: Holding) -> str:
    """The learned tensors of a component in words."""
    return "; ".join(
        f"{count} × {name} [{', '.join(f'{size:,}' for size in shape)}]" for name, shape, count in one.tensors
    )


def _table(
    run: OpenRun, held: dict[Part, Holding], now: dict[Part, int], at_n: dict[Part, int], *, n: int, lengths: str
) -> None:
    numbers = frame(held, now, at_n, n=n)
    columns: dict[str, Any] = {"Component": st.column_config.TextColumn(pinned=True)}
    for name in map(str, numbers.columns[1:7]):
        share = name.startswith("Share")
        columns[name] = st.column_config.NumberColumn(
            "Share" if share else name.replace("this sentence", "now"),
            format="%.2f %%" if share else "localized",
            help=name if share else None,
            width=80 if share else None,
        )
    st.container(key=run.key(TABLE)).dataframe(
        numbers,
        hide_index=True,
        height="content",
        column_config=columns,
        row_height=31,
        alt="Parameters and multiply-adds of every component.",
    )
    st.caption(f"Now: this sentence, {lengths}. Further right: roles, and the learned tensors.")
    st.download_button(
        "Table as CSV",
        numbers.to_csv(index=False, float_format="%.6g"),
        file_name="components.csv",
        mime="text/csv",
        key=run.key(CSV),
        on_click="ignore",
        icon=":material/download:",
    )
