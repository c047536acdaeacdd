"""Part "The model": the diagram's block menu, tables of costs and tensors, table of shapes recorded in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from glassformer.inside.features import ACTIVATIONS, heads, in_words, not_drawn
from glassformer.inside.model import model_pictures as pictures
from glassformer.inside.model.blocks import contents, destination
from glassformer.inside.model.model_pictures import OpenModel, lengths, named
from glassformer.inside.token_selection import in_words as tokens_in_words
from glassformer.inside.token_selection import sides_of
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import STACK_NAMES, STACKS, has_one_stack
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, drawing, menu
from glassformer.shared.i18n import frame, st, table
from glassformer.shared.page_blocks import draw_below
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import Side, Slot
from transformer.analysis import costs
from transformer.analysis.costs import Holding, Part, Pass, Shape, shapes_of, stand_ins
from transformer.analysis.costs import said as stand_in_words
from transformer.i18n import joined, paragraph, say
from transformer.model.anatomy import StackName, Sublayer, anatomy
from transformer.model.attention_scores import plain_scores
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

PLACE, OPEN, LENGTH = "model_place", "model_open", "cost_length"


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    o = OpenModel(run)
    known = o.blocks
    _choose(run, known, row)
    away = {place: (page, _elsewhere(run, place)) for place in known if (page := destination(place).page)}
    links = dict(zip(away, menu.hrefs(list(away.values())), strict=True))
    show(pictures.diagram, replace(o, links=links), take=partial(open_place, run.slot))
    left_out = list(not_drawn(o.config))
    if absent := stand_in_words(contents(o.run.checkpoint.model).absent):
        left_out.append(say("* {reason}", reason=joined(" ", absent)))
    drawing.explain(*map(drawing.plain, (in_words(o.config), *left_out)))
    with st.expander(say("Shapes, step by step"), type="compact"):
        _shapes(run)
    with st.expander(say("Parameters and multiply-adds"), type="compact"):
        st.markdown(drawing.plain(sums(o)))
        _choose_length(o)
        show_beside(pictures.shares, pictures.curves, o)
        st.markdown(drawing.plain(where_it_overtakes(o.config)))
        _table(o)
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


def _choose(run: OpenRun, known: dict[str, str], row: Any) -> None:
    """Draw the menu of all blocks, for the keyboard, and whether equal layers are to be drawn once."""
    slot, key = run.slot, run.key(PLACE)
    with row, controls.more(slot, "fold"):
        controls.keep_label(key, known.values())
        place = st.selectbox(say("Block"), list(known), key=key, format_func=lambda place: known.get(place, ""))
        page = destination(place).page
        if page is None:
            st.button(say("Open its view"), key=run.key(OPEN), on_click=partial(open_place, slot, place))
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


def sums(o: OpenModel) -> str:
    """All parameters, what is kept but not learned, and all multiply-adds of this sentence."""
    total, parts = sum(one.parameters for one in o.held.values()), anatomy(o.config)
    said = [say("{n:,} parameters in all; a table that two components share is counted once.", n=total)]
    kept = contents(o.run.checkpoint.model).buffers
    if kept:
        shapes = [say("{rows:,} × {columns:,}", rows=rows, columns=columns) for rows, columns in kept.values()]
        n = sum(rows * columns for rows, columns in kept.values())
        said.append(say("The {n:,} numbers in buffers ({shapes}) are not counted: they are sinusoids, computed from a "
                        "formula.", n=n, shapes=_both(shapes)))  # fmt: skip
    else:
        said.append(say("There are no buffers: every stored number is learned."))
    counted = say("Matrix products are counted; norms, softmax, activation, biases and sums are not.")
    if parts.writes:
        counted = say(
            "Matrix products are counted, including the half of a decoder attention map that the mask hides; "
            "norms, softmax, activation, biases and sums are not."
        )
    source, target = tokens_in_words(o.one.n_source, "source"), tokens_in_words(o.one.n_target, "target")
    lengths, n = _both([source] * parts.reads + [target] * parts.writes), sum(o.now.values())
    done = say("One pass over this sentence ({lengths}) takes {n:,} multiply-adds.", lengths=lengths, n=n)
    return joined(" ", [*said, done, counted])


def _both(said: Sequence[str]) -> str:
    return said[0] if len(said) == 1 else say("{one} and {other}", one=said[0], other=said[1])


@paragraph
def where_it_overtakes(config: ModelConfig) -> Iterator[str]:
    """From which length on the n² part is the larger one, and what that means for what the model reads."""
    every, alone, n = costs.overtakes(config), costs.overtakes(config, parts=costs.PROJECTIONS), config.max_len
    counts, width = costs.multiply_adds(config, n_source=n, n_target=n), 2 * config.d_model
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
    share = costs.grouped(counts)["maps"] / sum(counts.values())
    yield say("At this model's maximum of {n:,} tokens, the n² part is {share:.1%} of the work.", n=n, share=share)


def _choose_length(o: OpenModel) -> None:
    config, current, alone = o.config, max(o.read), has_one_stack(o.config)
    remarks = {
        costs.overtakes(config).n: say("n² overtakes"),
        config.max_len: say("longest"),
        current: say("this sentence") if len(o.read) == 1 else say("this sentence's longer side"),
    }
    help: str = say(
        "This model reads at most {n:,} tokens. Counts for longer inputs are theoretical.", n=config.max_len
    )
    if not alone:
        help = joined(" ", [say("Source and target get the same length."), help])
    options, kept = {n: f"{n:,}" for n in lengths(config, current)}, controls.field(o.slot, "tokens", key=LENGTH)
    controls.scale(kept, say("Tokens, n"), options, otherwise=current, help=help)
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
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


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
    alt, box = say("Parameters and multiply-adds of every component."), st.container(key=o.run.key("cost_table"))
    box.dataframe(table(make()), hide_index=True, height="content", column_config=drawn, row_height=31, alt=alt)
    st.caption(say("Scroll right for the roles and the learned tensors."))
    drawing.csv_button(make, key=o.run.key("cost_csv"), title=say("components"))


# ------------------------------------------------------------------------------------------------ shapes

_KEPT: Final = 32  # passes whose tables are kept: a step shows the same one
_COLUMNS: Final = {say("Component"): 112, say("Step", about="a computation"): 180, say("Shape"): 96,
                  say("Remark"): 240, say("Name in the code"): None}  # fmt: skip
_STACKS: Final[dict[Side, str]] = {"source": say("Encoder"), "target": say("Decoder")}
_NAMES: Final[dict[Sublayer, str]] = {
    "self_attn": say("Self-attention"),
    "cross_attn": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}


@dataclass(frozen=True)
class ShapeStep:
    """One line of the table."""

    where: str  # the component
    what: str  # what was computed
    site: str  # its name in `transformer.model.sites.SITES`; empty for a re-arrangement, which the model does not name
    remark: str = ""  # why it is so
    shape: Shape = ()  # as recorded, without the batch axis


def _shapes(run: OpenRun) -> None:
    """Draw the table of the encoder or of the decoder: side by side they have no room for the remarks."""
    trace, read = run.trace, run.trace.read_ids[: run.visible.n_rows]
    if (seen := attempt(lambda: recorded(run.checkpoint, trace.src_ids, read))) is None:
        return
    config, parts = run.checkpoint.config, anatomy(run.checkpoint.config)
    tokens = [tokens_in_words(seen.src_ids[1], "source")] * parts.reads
    tokens += [tokens_in_words(seen.tgt_ids[1], "target")] * parts.writes
    said = [say("These shapes were recorded in one pass over this sentence: {tokens}.", tokens=joined(", ", tokens))]
    if run.view.guess:
        said += [say("Everything after the current step is left out.")]
    said += [say("The batch axis (size {size}) is left out.", size=seen.src_ids[0])]
    st.caption(drawing.plain(joined(" ", said)))
    kept, options = controls.field(run.slot, "side"), {side: _STACKS[side] for side in sides_of(config)}
    stack = STACKS[controls.choose(kept, say("Stack"), options, bare=True)]
    n_layers = parts.stack(stack).n_layers
    if len(equal_layers(seen, stack, n_layers)) == 1 < n_layers:
        st.caption(say("All {n} layers have these shapes.", n=n_layers))
    st.container(key=run.key(f"shapes_{stack}")).dataframe(
        table(_cells(seen, config, stack, stand_ins(run.checkpoint.model))),
        hide_index=True,
        height="content",
        row_height=29,
        column_config={name: st.column_config.TextColumn(width=width) for name, width in _COLUMNS.items()},
        alt=say("Shapes in the {stack}, step by step.", stack=STACK_NAMES[stack]),
    )


def recorded(checkpoint: Checkpoint, src_ids: tuple[int, ...], tgt_ids: tuple[int, ...]) -> Pass:
    """Shapes of one pass, run in the queue."""
    return loading.runner().compute(
        ("shapes", checkpoint.content_hash, src_ids, tgt_ids),
        lambda: shapes_of(checkpoint.model, src_ids, tgt_ids),
        nbytes=lambda seen: 200 * len(seen.sites),
    )


def steps_of(seen: Pass, config: ModelConfig, stack: StackName) -> list[ShapeStep]:
    """The lines of one stack; layers whose shapes are equal are written once."""
    parts = anatomy(config)
    writes = parts.writes and stack == parts.stacks[-1].name
    ids = seen.tgt_ids if writes else seen.src_ids
    rows = config.tgt_vocab_size if writes and not config.shared_vocab else config.src_vocab_size
    start, table = say("Start"), f"{stack}.embedding"
    steps = [
        ShapeStep(start, say("Ids"), "", shape=ids[1:]),
        ShapeStep(start, say("Rows of the table"), f"{table}.tokens", say("a table of {n:,} rows", n=rows)),
        ShapeStep(start, say("Position vectors"), f"{table}.positions", say("the same for every sentence")),
    ]
    types, sites = say("Vectors of the token types"), seen.sites
    if f"{table}.types" in sites:
        steps.append(ShapeStep(start, types, f"{table}.types", say("all of the first type")))
    if config.embedding_norm:
        steps += [ShapeStep(start, say("Their sum"), f"{table}.sum"),
                  ShapeStep(start, say("After a norm: the stream"), f"{table}.output")]  # fmt: skip
    else:
        placed = f"{table}.positions" in seen.sites
        stream = say("Their sum: the stream") if placed else say("The stream")
        steps.append(ShapeStep(start, stream, f"{table}.output"))
    for layers in equal_layers(seen, stack, parts.stack(stack).n_layers):
        steps += _layer(seen, config, stack, layers)
    last = say("Final norm") if config.final_norm else say("Last layer's output")
    is_memory = parts.writes and not writes
    steps.append(ShapeStep(say("End"), say("{last}: the memory", last=last) if is_memory else last, f"{stack}.output"))
    if parts.fills:
        head = say("Head")
        steps += [
            ShapeStep(head, say("Dense map"), "mlm_head.pre_activation"),
            ShapeStep(head, ACTIVATIONS[config.mlm_activation], "mlm_head.activation"),
            ShapeStep(head, say("Norm"), "mlm_head.output"),
        ]
    if writes or parts.fills:
        each = say("one score for each of {n:,} tokens", n=config.tgt_vocab_size)
        steps.append(ShapeStep(say("End"), say("Logits"), "logits", each))
    return [_with_shape(step, seen) for step in steps if not step.site or step.site in seen.sites]


@lru_cache(maxsize=_KEPT)
def equal_layers(seen: Pass, stack: str, n_layers: int) -> list[range]:
    """Neighbouring layers in which every site had the same shape."""
    tables = []
    for layer in range(n_layers):
        start = f"{stack}.{layer}."
        tables.append({site[len(start) :]: shape for site, shape in seen.sites.items() if site.startswith(start)})
    starts = [layer for layer in range(n_layers) if layer == 0 or tables[layer] != tables[layer - 1]]
    return [range(first, last) for first, last in zip(starts, [*starts[1:], n_layers], strict=True)]


def _layer(seen: Pass, config: ModelConfig, stack: StackName, layers: range) -> list[ShapeStep]:
    start, parts = f"{stack}.{layers[0]}", anatomy(config).stack(stack)
    which = None if len(layers) == parts.n_layers else layers  # what stands above the table says that all are alike
    steps = []
    for sub in parts.sublayers:
        where, place = _of_layers(_NAMES[sub], which), f"{start}.{sub}"
        inner = _feed_forward(where, place, config) if sub == "ffn" else _attention(seen, where, place, config)
        norm = ShapeStep(where, say("Norm"), f"{place}.norm")
        if config.norm == "both":
            inner.append(ShapeStep(where, say("Norm of the output"), f"{place}.output_norm"))
        inner.append(ShapeStep(where, say("Stream + output"), f"{place}.residual"))
        steps += [*inner, norm] if config.norm == "post" else [norm, *inner]
    where = _of_layers(say("Layer"), which)
    return [*steps, ShapeStep(where, say("Stream after it"), f"{start}.output")]


def _of_layers(name: str, layers: range | None) -> str:
    """A component, and of which layers it is unless it is of all."""
    if layers is None:
        return name
    if len(layers) == 1:
        return say("{component} {layer}", component=name, layer=layers[0] + 1)
    return say("{component} {first} to {last}", component=name, first=layers[0] + 1, last=layers[-1] + 1)


def _attention(seen: Pass, where: str, place: str, config: ModelConfig) -> list[ShapeStep]:
    """What an attention computes; two re-arrangements have no name in the model."""
    config = config.of("encoder" if place.startswith("encoder") else "decoder")
    _, n_heads, length, d_head = seen.sites[f"{place}.queries"]
    cut, row = (length, n_heads, d_head), (length, n_heads * d_head)  # before the heads' axis moves to the front
    scores = say("Scores q·k / √{width}", width=config.d_head) if plain_scores(config) else say("Scores")
    steps: list[tuple[Any, ...]] = [
        (say("Queries, cut into heads"), "", say("a view: nothing is copied"), cut),
        (say("Queries before norm and rotation"), f"{place}.projected_queries"),
        (say("Queries, heads first"), f"{place}.queries", heads(config)),
        (say("Keys before norm and rotation"), f"{place}.projected_keys"),
        (say("Keys, heads first"), f"{place}.keys"),
        (say("Values, heads first"), f"{place}.values"),
        (say("Bias of positions"), f"{place}.bias", say("added to the scores")),
        (scores, f"{place}.scores", say("every query with every key")),
        (say("Mask"), f"{place}.mask", say("an axis of size 1 is the same for every head or query")),
        (say("Weights: softmax"), f"{place}.weights", say("over the keys that the mask allows")),
        (say("Weighted sums of values"), f"{place}.heads"),
        (say("Heads side by side"), "", "", row),
        (say("Output projection"), f"{place}.output", say("back to d_model")),
    ]
    return [ShapeStep(where, *step) for step in steps]


def _feed_forward(where: str, place: str, config: ModelConfig) -> list[ShapeStep]:
    config = config.of("encoder" if place.startswith("encoder") else "decoder")
    ratio = say("d_ff / d_model = {ratio:g}", ratio=config.d_ff / config.d_model)
    function, up, before = ACTIVATIONS[config.activation], say("Up-projection"), f"{place}.pre_activation"
    steps = [ShapeStep(where, up, before, ratio)]
    if config.gated:
        function = say("{function} of the gate, times the up-projection", function=function)
        steps = [ShapeStep(where, say("Gate"), before, ratio), ShapeStep(where, up, f"{place}.linear", ratio)]
    steps.append(ShapeStep(where, function, f"{place}.activation"))
    return [*steps, ShapeStep(where, say("Down-projection"), f"{place}.output", say("back to d_model"))]


def _with_shape(step: ShapeStep, seen: Pass) -> ShapeStep:
    if not step.site:
        return step
    shape = seen.sites[step.site]
    return replace(step, shape=shape if step.site.endswith("embedding.positions") else shape[1:])  # no batch axis


@lru_cache(maxsize=_KEPT)
def _cells(seen: Pass, config: ModelConfig, stack: StackName, absent: frozenset[str]) -> dict[str, list[str]]:
    """The columns of the table; `absent` are tensors that replace parts which the model does not have."""
    rows = []
    for step in steps_of(seen, config, stack):
        where, _, rest = step.site.partition(".")
        instead = stand_in_words(absent, costs.TABLE) if rest == "embedding.tokens" else []  # of what is absent
        if rest.endswith(("attn.output", "ffn.output")):
            instead = stand_in_words(absent, f"{where}.layers.{rest.removesuffix('output')}")
        shape, site = f"[{', '.join(map(str, step.shape))}]", step.site or "—"
        rows.append((step.where, step.what, shape, instead[0] if instead else step.remark, site))
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
