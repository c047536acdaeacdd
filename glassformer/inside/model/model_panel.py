"""Part "The model": diagram, shapes, and costs of the loaded model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.inside.features import in_words, not_drawn
from glassformer.inside.model import model_pictures as pictures
from glassformer.inside.model import shapes
from glassformer.inside.model.blocks import contents, destination
from glassformer.inside.model.model_pictures import OpenModel, lengths, named
from glassformer.inside.token_selection import in_words as tokens_in_words
from glassformer.runs.map_axes import has_one_stack
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, drawing, menu
from glassformer.shared.i18n import frame, st, table
from glassformer.shared.page_blocks import draw_below
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.analysis import costs
from transformer.analysis.costs import Holding, Part
from transformer.analysis.costs import said as stand_in_words
from transformer.i18n import joined, paragraph, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

PLACE = "model_place"
OPEN = "model_open"
LENGTH = "cost_length"
TABLE = "cost_table"
CSV = "cost_csv"


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    o = OpenModel(run)
    _diagram(run, o, row)
    left_out = list(not_drawn(o.config))
    if absent := stand_in_words(contents(o.run.checkpoint.model).absent):
        left_out.append(say("* {reason}", reason=joined(" ", absent)))
    drawing.explain(*map(drawing.plain, (in_words(o.config), *left_out)))
    with st.expander(say("Shapes, step by step"), type="compact"):
        shapes.draw(run)
    with st.expander(say("Parameters and multiply-adds"), type="compact"):
        _costs(o)
    fold = controls.fold(controls.field(o.slot, "distances"), say("How far apart are two words?"))
    if fold.open:
        with fold:
            _distances(o)
    draw_below(o)


SIDE: Final = 1  # tokens on each side that a window or a convolution reaches
LAYERS: Final = {
    "attention": (say("Attention"), "n²·d"),
    "window": (say("Attention in a window of {k} keys", k=2 * SIDE + 1), "k·n·d"),
    "recurrence": (say("Recurrence"), "n·d²"),
    "convolution": (say("Convolution of width {k}", k=2 * SIDE + 1), "k·n·d²"),
    "dilated": (say("The same, dilated"), "k·n·d²"),
}


def _distances(o: OpenModel) -> None:
    """Draw table 1 of the paper, counted for the length and the width at hand."""
    n, d = o.n, o.config.d_model
    rows = [
        [LAYERS[name][0], f"{path:,}", f"{steps:,}", f"{n:,}", f"{work:,}", LAYERS[name][1]]
        for name, (path, steps, work) in costs.kinds_of_layers(n, d, side=SIDE).items()
    ]
    names = [say("Layer, n = {n:,}, d = {d:,}", n=n, d=d), say("Path from first to last token")]
    names += [say("Steps in training"), say("Steps in writing"), say("Multiply-adds"), say("Order in the paper")]
    st.table(frame(rows, columns=names), hide_index=True, alt=say("Path, steps and cost of kinds of layers."))
    said = say(
        "Table 1 of Vaswani et al. (2017) in numbers. The paper leaves out attention's projections, 4·n·d²: here "
        "{share:.0%} of its work. log_k(n) layers are enough for dilated convolutions only.",
        share=2 * d / (2 * d + n),
    )
    st.caption(said)


# ------------------------------------------------------------------------------------------------ the diagram


def _diagram(run: OpenRun, o: OpenModel, row: Any) -> None:
    known = o.blocks
    _choose(run, known, row)
    away = {place: (page, _elsewhere(run, place)) for place in known if (page := destination(place).page)}
    links = dict(zip(away, menu.hrefs(list(away.values())), strict=True))
    show(pictures.diagram, replace(o, links=links), take=partial(open_place, run.slot))


def _choose(run: OpenRun, known: dict[str, str], row: Any) -> None:
    """Draw the menu of all blocks, for the keyboard, and whether equal layers are to be drawn once."""
    slot, key = run.slot, run.key(PLACE)

    def go() -> None:
        place = st.session_state.get(key)
        if place in known:
            open_place(slot, place)

    with row, controls.more(slot, "fold"):
        controls.keep_label(key, known.values())
        place = st.selectbox(say("Block"), list(known), key=key, format_func=lambda place: known.get(place, ""))
        page = destination(place).page
        if page is None:
            st.button(say("Open its view"), key=run.key(OPEN), on_click=go)
        else:
            menu.link(page, say("Open its view"), _elsewhere(run, place))
        if any(stack.n_layers > 1 for stack in anatomy(run.checkpoint.config).stacks):
            controls.switch(controls.field(slot, "fold"), say("Draw identical layers once"), folded=True)


def open_place(slot: Slot, place: str) -> None:
    """Callback: go to the view of a block on this page; to those on other pages the browser goes by itself."""
    there = destination(place)
    if there.page is None:
        session.replace(slot, **there.fields)


def _elsewhere(run: OpenRun, place: str) -> Link:
    """What another page shows of a block; a cell is one of another map."""
    fields = {"query": None, "key": None} | destination(place).fields
    return address(run.checkpoint, replace(run.link, view=run.view), **fields)


# ------------------------------------------------------------------------------------------------ costs


def _costs(o: OpenModel) -> None:
    """Draw the sums, the table, and what a length does."""
    st.markdown(drawing.plain(sums(o)))
    _choose_length(o)
    show_beside(pictures.shares, pictures.curves, o)
    st.markdown(drawing.plain(where_it_overtakes(o.config)))
    _table(o)


def sums(o: OpenModel) -> str:
    """All parameters, what is kept but not learned, and all multiply-adds of this sentence."""
    total = sum(one.parameters for one in o.held.values())
    said = [say("{n:,} parameters in all; a table that two components share is counted once.", n=total)]
    kept = contents(o.run.checkpoint.model).buffers
    if kept:
        shapes = [say("{rows:,} × {columns:,}", rows=rows, columns=columns) for rows, columns in kept.values()]
        said.append(
            say("The {n:,} numbers in buffers ({shapes}) are not counted: they are sinusoids, computed from a "
                "formula.",
                n=sum(rows * columns for rows, columns in kept.values()), shapes=_both(shapes))
        )  # fmt: skip
    else:
        said.append(say("There are no buffers: every stored number is learned."))
    counted = say("Matrix products are counted; norms, softmax, activation, biases and sums are not.")
    if anatomy(o.config).writes:
        counted = say(
            "Matrix products are counted, including the half of a decoder attention map that the mask hides; "
            "norms, softmax, activation, biases and sums are not."
        )
    return joined(" ", [
        *said,
        say("One pass over this sentence ({lengths}) takes {n:,} multiply-adds.", lengths=_lengths(o),
            n=sum(o.now.values())),
        counted,
    ])  # fmt: skip


def _lengths(o: OpenModel) -> str:
    """How many tokens each stack reads, in words."""
    parts = anatomy(o.config)
    source, target = tokens_in_words(o.one.n_source, "source"), tokens_in_words(o.one.n_target, "target")
    return _both([source] * parts.reads + [target] * parts.writes)


def _both(said: Sequence[str]) -> str:
    return said[0] if len(said) == 1 else say("{one} and {other}", one=said[0], other=said[1])


@paragraph
def where_it_overtakes(config: ModelConfig) -> Iterator[str]:
    """From which length on the n² part is the larger one, and what that means for what the model reads."""
    every, alone = costs.overtakes(config), costs.overtakes(config, parts=costs.PROJECTIONS)
    share, width = _maps_share(config, config.max_len), 2 * config.d_model
    if has_one_stack(config):
        yield say(
            "With n tokens, the n² part takes {quadratic:,}·n² multiply-adds, and everything else takes {linear:,}·n.",
            quadratic=every.quadratic,
            linear=every.linear,
        )
    else:
        yield say(
            "With n tokens on both sides, the n² part takes {quadratic:,}·n² multiply-adds, and everything "
            "else takes {linear:,}·n.",
            quadratic=every.quadratic,
            linear=every.linear,
        )
    crossing = every.linear / every.quadratic
    if alone.linear == width * alone.quadratic:
        yield say(
            "So from n = {n:,} on (n > {crossing:,.1f}), the n² part is larger than everything else together. "
            "From n = {alone:,} on, just above 2·d_model = {width:,}, it is already larger than the attention "
            "projections alone.",
            n=every.n,
            crossing=crossing,
            alone=alone.n,
            width=width,
        )
    else:  # heads that share keys and values have smaller projections
        yield say(
            "So from n = {n:,} on (n > {crossing:,.1f}), the n² part is larger than everything else together. "
            "From n = {alone:,} on, it is already larger than the attention projections alone.",
            n=every.n,
            crossing=crossing,
            alone=alone.n,
        )
    yield say(
        "At this model's maximum of {n:,} tokens, the n² part is {share:.1%} of the work.",
        n=config.max_len,
        share=share,
    )


def _maps_share(config: ModelConfig, n: int) -> float:
    counts = costs.multiply_adds(config, n_source=n, n_target=n)
    return costs.grouped(counts)["maps"] / sum(counts.values())


def _choose_length(o: OpenModel) -> None:
    config, current, alone = o.config, max(o.read), has_one_stack(o.config)
    remarks = {
        costs.overtakes(config).n: say("n² overtakes"),
        config.max_len: say("longest"),
        current: say("this sentence") if len(o.read) == 1 else say("this sentence's longer side"),
    }
    beyond = say("This model reads at most {n:,} tokens. Counts for longer inputs are theoretical.", n=config.max_len)
    controls.scale(
        controls.field(o.slot, "tokens", key=LENGTH),
        say("Tokens, n"),
        {n: f"{n:,}" for n in lengths(config, current)},
        otherwise=current,
        help=beyond if alone else joined(" ", [say("Source and target get the same length."), beyond]),
    )
    st.caption(joined(" · ", [say("{n:,}: {remark}", n=n, remark=remarks[n]) for n in sorted(remarks)]))


def columns(
    config: ModelConfig, held: dict[Part, Holding], now: dict[Part, int], at_n: dict[Part, int], *, n: int
) -> dict[str, list[Any]]:
    """A table with one row a component, and one for all of them, by the names of its columns."""
    totals = (sum(one.parameters for one in held.values()), sum(now.values()), sum(at_n.values()))
    rows = []
    for part in costs.parts_of(config):
        counts = (held[part].parameters, now[part], at_n[part])
        pairs = [value for count, total in zip(counts, totals, strict=True) for value in (count, 100 * count / total)]
        name, role = named(part, config)
        rows.append((name, *pairs, role, tensors(held[part])))
    rows.append((say("All", about="a sum"), *(value for total in totals for value in (total, 100.0)), "", ""))
    names = [say("Component"), *_counted(n), say("Role"), say("Tensors")]
    return {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def _counted(n: int) -> list[str]:
    """The columns of numbers: pairs of a count and its share."""
    return [
        say("Parameters"),
        say("Share of parameters (%)"),
        say("Multiply-adds, this sentence"),
        say("Share of multiply-adds, this sentence (%)"),
        say("Multiply-adds, n = {n}", n=n),
        say("Share of multiply-adds, n = {n} (%)", n=n),
    ]


def tensors(one: Holding) -> str:
    """The learned tensors of a component: how many, their name and shape."""
    return "; ".join(
        f"{count} × {name} [{', '.join(f'{size:,}' for size in shape)}]" for name, shape, count in one.tensors
    )


def _table(o: OpenModel) -> None:
    make = partial(columns, o.config, o.held, o.now, o.at_n, n=o.n)
    drawn: dict[str, Any] = {say("Component"): st.column_config.TextColumn(pinned=True)}
    for count, share in zip(*[iter(_counted(o.n))] * 2, strict=True):
        drawn[count] = st.column_config.NumberColumn(format="localized")
        drawn[share] = st.column_config.NumberColumn(say("Share"), format="%.2f %%", help=share, width=80)
    st.container(key=o.run.key(TABLE)).dataframe(
        table(make()),
        hide_index=True,
        height="content",
        column_config=drawn,
        row_height=31,
        alt=say("Parameters and multiply-adds of every component."),
    )
    st.caption(say("Scroll right for the roles and the learned tensors."))
    drawing.csv_button(make, key=o.run.key(CSV), title=say("components"))
