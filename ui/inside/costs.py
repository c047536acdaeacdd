"""What each component of the loaded model holds and does, for the sentence at hand and for any length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import charts
from charts.costs import HOW_TO_READ_CURVES, HOW_TO_READ_SHARES
from transformer.analysis import costs
from transformer.analysis.costs import Holding, Part
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from ui.inside import looked_at
from ui.inside.sized import contents
from ui.runs import figures
from ui.runs.figures import FURTHEST
from ui.runs.open_run import OpenRun
from ui.runs.sides import has_one_stack
from ui.shared import choices, drawing
from ui.shared.door import st, table
from words import joined, say

SHARES = "cost_shares"
CURVES = "cost_curves"
LENGTH = "cost_length"
TABLE = "cost_table"
CSV = "cost_csv"
_STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
          8192, 16_384, 32_768)  # fmt: skip

NAMES: dict[Part, str] = {
    "source_embedding": say("Source embedding"),
    "target_embedding": say("Target embedding"),
    "positions": say("Positions"),
    "encoder_projections": say("Encoder self: projections"),
    "encoder_maps": say("Encoder self: n² part"),
    "encoder_ffn": say("Encoder feed-forward"),
    "decoder_projections": say("Decoder self: projections"),
    "decoder_maps": say("Decoder self: n² part"),
    "cross_projections": say("Cross: projections"),
    "cross_maps": say("Cross: n² part"),
    "decoder_ffn": say("Decoder feed-forward"),
    "norms": say("Norms"),
    "output": say("Output layer"),
}
_PROJECTIONS = say("Make queries, keys and values (q_proj, k_proj, v_proj), and join the heads (out_proj)")
_MAPS = say("q·k for the scores, weights·v for the sums")
_FFN = say("Widen each token to d_ff, then back")
_ROLES: dict[Part, str] = {
    "source_embedding": say("A vector for each source piece: looked up, not multiplied"),
    "target_embedding": say("A vector for each target piece: looked up, not multiplied"),
    "positions": say("A vector for each position: added"),
    "encoder_projections": _PROJECTIONS,
    "encoder_maps": _MAPS,
    "encoder_ffn": _FFN,
    "decoder_projections": _PROJECTIONS,
    "decoder_maps": _MAPS,
    "cross_projections": say("Make queries, keys and values (q_proj, k_proj, v_proj), and join the heads (out_proj): "
                             "queries of the target, keys and values of the source"),
    "cross_maps": _MAPS,
    "decoder_ffn": _FFN,
    "norms": say("Bring each token's vector to one size; the last one ends a stack"),
    "output": say("A score for every target piece"),
}  # fmt: skip


def draw(run: OpenRun) -> None:
    """Draw the sums, the table, and what a length does."""
    config = run.checkpoint.config
    n_source, n_target = len(run.trace.src_ids), run.looking.n_rows
    held = contents(run.checkpoint.model).held
    st.subheader(say("Parameters and multiply-adds"))
    st.markdown(drawing.plain(sums(run.checkpoint.model, held, n_source=n_source, n_target=n_target)))
    n = _choose_length(run)
    at_n = costs.multiply_adds(config, n_source=n, n_target=n)
    now = costs.multiply_adds(config, n_source=n_source, n_target=n_target)
    drawing.beside(lambda: _shares(run, held, at_n, n), lambda: _curves(run, n))
    st.markdown(drawing.plain(where_it_overtakes(config)))
    _table(run, held, now, at_n, n=n, lengths=_lengths(config, n_source, n_target))


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
    said = [say("{n:,} parameters in all; a table that two components share counts once.", n=total)]
    kept = contents(model).buffers
    if kept:
        shapes = [say("{rows:,} × {columns:,}", rows=rows, columns=columns) for rows, columns in kept.values()]
        said.append(
            say("Not among them: {n:,} numbers in buffers ({shapes}), the sinusoids, which are a formula.",
                n=sum(rows * columns for rows, columns in kept.values()), shapes=_both(shapes))
        )  # fmt: skip
    else:
        said.append(say("There are no buffers: everything that is kept is learned."))
    counted = say("Matrix products are counted; norms, softmax, activation, biases and sums are not.")
    if anatomy(config).writes:
        counted = say("Matrix products are counted, the half of a decoder map that the mask hides too; norms, "
                      "softmax, activation, biases and sums are not.")  # fmt: skip
    return joined(" ", [
        *said,
        say("One pass over this sentence, {lengths}, takes {n:,} multiply-adds.",
            lengths=_lengths(config, n_source, n_target), n=done),
        counted,
    ])  # fmt: skip


def _lengths(config: ModelConfig, n_source: int, n_target: int) -> str:
    """How many tokens each stack reads, in words."""
    parts, source, target = (
        anatomy(config),
        looked_at.in_words(n_source, "source"),
        looked_at.in_words(n_target, "target"),
    )
    return _both([source] * parts.reads + [target] * parts.writes)


def _both(named: Sequence[str]) -> str:
    """One thing, or two of them."""
    return named[0] if len(named) == 1 else say("{one} and {other}", one=named[0], other=named[1])


def where_it_overtakes(config: ModelConfig) -> str:
    """From which length on the n² part is the larger one, and what that means for what the model reads."""
    every, alone = costs.overtakes(config), costs.overtakes(config, parts=costs.PROJECTIONS)
    share, width = _maps_share(config, config.max_len), 2 * config.d_model
    if has_one_stack(config):
        said = [say("With n tokens the n² part takes {quadratic:,}·n² multiply-adds and all the rest {linear:,}·n.",
                    quadratic=every.quadratic, linear=every.linear)]  # fmt: skip
    else:
        said = [say("With n tokens on both sides the n² part takes {quadratic:,}·n² multiply-adds and all the rest "
                    "{linear:,}·n.", quadratic=every.quadratic, linear=every.linear)]  # fmt: skip
    crossing = every.linear / every.quadratic
    if alone.linear == width * alone.quadratic:
        said += [say("So the n² part is the larger one from n = {n:,} on (n > {crossing:,.1f}); it overtakes the "
                     "attention projections alone at n = {alone:,}, just above 2·d_model = {width:,}.",
                     n=every.n, crossing=crossing, alone=alone.n, width=width)]  # fmt: skip
    else:  # heads that share keys and values have smaller projections
        said += [say("So the n² part is the larger one from n = {n:,} on (n > {crossing:,.1f}); it overtakes the "
                     "attention projections alone at n = {alone:,}.",
                     n=every.n, crossing=crossing, alone=alone.n)]  # fmt: skip
    if every.n > config.max_len:
        said += [say("This model reads at most {n:,} tokens, where the n² part is {share:.1%} of the work: what lies "
                     "beyond is arithmetic, no run.", n=config.max_len, share=share)]  # fmt: skip
    else:
        said += [say("At the {n:,} tokens that this model reads at most it is {share:.1%} of the work.",
                     n=config.max_len, share=share)]  # fmt: skip
    return joined(" ", said)


def _maps_share(config: ModelConfig, n: int) -> float:
    counts = costs.multiply_adds(config, n_source=n, n_target=n)
    return costs.grouped(counts)["maps"] / sum(counts.values())


def lengths(config: ModelConfig, current: int) -> list[int]:
    """The lengths that can be chosen: round ones, the current one, the longest, and where the n² part overtakes."""
    last = max(FURTHEST, config.max_len)
    special = {current, config.max_len, costs.overtakes(config).n}
    return sorted({n for n in (*_STEPS, *special) if n <= last})


def _choose_length(run: OpenRun) -> int:
    config, alone = run.checkpoint.config, has_one_stack(run.checkpoint.config)
    read = {side: len(looked_at.pieces_of(run, side)) for side in looked_at.sides_of(config)}
    current, even = max(read.values()), len({*read.values()}) == 1
    remarks = {
        costs.overtakes(config).n: say("n² overtakes"),
        config.max_len: say("longest"),
        current: say("this sentence") if even else say("this sentence's longer side"),
    }
    beyond = say("Beyond {n:,} tokens, the most that this model reads, the counts are arithmetic.", n=config.max_len)
    chosen = choices.scale(
        choices.field(run.slot, "tokens", key=LENGTH),
        say("Tokens, n") if alone else say("Tokens on each side, n"),
        {n: f"{n:,}" for n in lengths(config, current)},
        otherwise=current,
        help=beyond if alone else joined(" ", [say("Source and target get the same length."), beyond]),
    )
    st.caption(joined(" · ", [say("{n:,}: {remark}", n=n, remark=remarks[n]) for n in sorted(remarks)]))
    return chosen


def _shares(run: OpenRun, held: dict[Part, Holding], done: dict[Part, int], n: int) -> None:
    parts = [part for part in costs.PARTS if held[part].parameters or done[part]]
    figure = charts.cost_shares_spec(
        [_named(part, run.checkpoint.config)[0] for part in parts],
        [held[part].parameters for part in parts],
        [done[part] for part in parts],
        title=say("Shares of components at n = {n:,}", n=n),
    )
    alt = say("Each component's share of parameters and of multiply-adds at {n} tokens on each side.", n=n)
    if has_one_stack(run.checkpoint.config):
        alt = say("Each component's share of parameters and of multiply-adds at {n} tokens.", n=n)
    drawing.chart(figure, key=run.key(SHARES), alt=alt, how_to_read=HOW_TO_READ_SHARES)


def _named(part: Part, config: ModelConfig) -> tuple[str, str]:
    """What a component is called, and what it does; a model of one stack has one table of embeddings."""
    if part == "source_embedding" and has_one_stack(config):
        return say("Embedding"), say("A vector for each piece: looked up, not multiplied")
    return NAMES[part], _ROLES[part]


def _curves(run: OpenRun, n: int) -> None:
    config = run.checkpoint.config
    last = max(FURTHEST, config.max_len)
    alt = say("Multiply-adds of the n² part and of the linear parts from 1 to {n:,} tokens on each side.", n=last)
    if has_one_stack(config):
        alt = say("Multiply-adds of the n² part and of the linear parts from 1 to {n:,} tokens.", n=last)
    drawing.chart(figures.cost_curves(config, n), key=run.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES)


def columns(
    config: ModelConfig, held: dict[Part, Holding], now: dict[Part, int], at_n: dict[Part, int], *, n: int
) -> dict[str, list[Any]]:
    """A table with one row a component, and one for all of them, by the names of its columns.

    Args:
        config: The features of the model.
        held: Parameters.
        now: Multiply-adds of the sentence.
        at_n: Multiply-adds at the chosen length.
        n: That length.
    """
    totals = (sum(one.parameters for one in held.values()), sum(now.values()), sum(at_n.values()))
    rows = []
    for part in costs.parts_of(config):
        counts = (held[part].parameters, now[part], at_n[part])
        pairs = [value for count, total in zip(counts, totals, strict=True) for value in (count, 100 * count / total)]
        name, role = _named(part, config)
        rows.append((name, *pairs, role, tensors(held[part])))
    rows.append((say("All", about="a sum"), *(value for total in totals for value in (total, 100.0)), "", ""))
    names = [say("Component"), *(name for name, _ in _counted(n)), say("Role"), say("Tensors")]
    return {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def _counted(n: int) -> list[tuple[str, str]]:
    """The columns of numbers: each name in full, and above the column; pairs of a count and its share."""
    share = say("Share")
    return [
        (say("Parameters"), say("Parameters")),
        (say("Share of parameters (%)"), share),
        (say("Multiply-adds, this sentence"), say("Multiply-adds, now")),
        (say("Share of multiply-adds, this sentence (%)"), share),
        (say("Multiply-adds, n = {n}", n=n), say("Multiply-adds, n = {n}", n=n)),
        (say("Share of multiply-adds, n = {n} (%)", n=n), share),
    ]


def tensors(one: Holding) -> str:
    """The learned tensors of a component: how many, their name and shape."""
    return "; ".join(
        f"{count} × {name} [{', '.join(f'{size:,}' for size in shape)}]" for name, shape, count in one.tensors
    )


def _table(
    run: OpenRun, held: dict[Part, Holding], now: dict[Part, int], at_n: dict[Part, int], *, n: int, lengths: str
) -> None:
    make = partial(columns, run.checkpoint.config, held, now, at_n, n=n)
    drawn: dict[str, Any] = {say("Component"): st.column_config.TextColumn(pinned=True)}
    for place, (name, above) in enumerate(_counted(n)):
        share = place % 2 == 1
        drawn[name] = st.column_config.NumberColumn(
            above,
            format="%.2f %%" if share else "localized",
            help=name if share else None,
            width=80 if share else None,
        )
    st.container(key=run.key(TABLE)).dataframe(
        table(make()),
        hide_index=True,
        height="content",
        column_config=drawn,
        row_height=31,
        alt=say("Parameters and multiply-adds of every component."),
    )
    said = say("Now: this sentence, {lengths}.", lengths=lengths)
    st.caption(joined(" ", [said, say("Further right: roles, and the learned tensors.")]))
    drawing.csv_button(make, key=run.key(CSV), title=say("components"))
