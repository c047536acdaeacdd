"""The page What goes wrong: one card for any mistake of the catalogue, with both outputs, losses, maps and code.

The charts are of the losses of the right output, and of the maps that the mistake changes most.
"""

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.mistake_runs import (
    OLD,
    TRAINED_SO,
    MistakeResult,
    all_changes,
    look,
    opening,
    shown,
)
from glassformer.extensions.what_if.comparison import comparing
from glassformer.extensions.wirings.catalogue import Variant, texts
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import studies
from glassformer.runs.open_run import OpenRun
from glassformer.runs.picture import Plot
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, drawing, menu
from glassformer.shared.i18n import st
from glassformer.state.link import Link, write_link
from transformer.i18n import say
from transformer.i18n.sentence import digits
from transformer.model.anatomy import Attention, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import write
from transformer.runs.interventions.targets import ATTENTIONS, part_name
from transformer.runs.trace import Trace

MISTAKE: Final = "mistake"  # the field
SIDES: Final = (say("As it should be"), say("With the mistake"))
LOSSES, MAP = "mistake_losses", "mistake_map"  # begin the keys of the charts
PAGES: Final = {
    "attention": say("Attention"),
    "positions": say("Positions"),
    "masks": say("Masks"),
    "inside": say("Inside"),
}
"""Where a mistake can be seen."""
NOTHING: Final = "–"
MOST_PIECES: Final = 12  # of an output without text
PATIENCE_SECONDS: Final = 0.7  # that the menu waits before it says which mistakes change nothing
LOOK_SECONDS: Final = 1.0


# ------------------------------------------------------------------------------------------------ charts of a card

HOW_TO_READ: Final = say(
    "Each row is a query. The stronger a cell's colour, the larger the weight of that key. Hatched cells are closed by "
    "the mask; plain grey cells are NaN."
)
_MOST_BARS: Final = 40  # tokens; above this bars are too thin to distinguish
_LEAST: Final = 1e-4  # of a mean difference of weights; rounding stays far below


def losses(found: MistakeResult) -> Plot:
    """The loss of each token of the right output on both sides, beside each other."""
    kind = "bar" if len(found.ids) <= _MOST_BARS else "markers"
    series = [
        Series(name, read.losses, {"marker": {"color": colour}}, kind, "%{y:.3f}")  # type: ignore[arg-type]
        for name, read, colour in zip(SIDES, found.reads, (theme.GUIDE_COLOR, theme.TARGET_COLOR), strict=True)
        if read is not None
    ]
    title = say("Loss of each token of the correct output")
    title = title if found.is_reference else say("Loss of each token of the output without the mistake")
    tokens = Axis(say("Output token"), [found.right.vocabulary[i] for i in found.ids])
    drawn = lines(title, tokens, Scale(say("Loss (nats)"), {"rangemode": "tozero"}), series, height=340, top=92)
    how = say("Each group is one token. Its two bars show the two cases named above the chart.")
    return Plot(**drawn, how_to_read=how)


@dataclass(frozen=True, eq=False)
class ChangedMap:
    """A map of attention that a mistake changes."""

    attention: Attention
    layer: int
    head: int | None  # None: the mean of all heads, where the mistake changes their number
    sides: tuple[np.ndarray, ...]  # its weights [Q, K] without the mistake and with it

    @property
    def address(self) -> str:
        """What an address calls it."""
        return f"{self.attention.kind}.{self.layer + 1}.{0 if self.head is None else self.head + 1}"

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return part_name(ATTENTIONS[self.attention.kind], self.layer, self.head)

    @property
    def apart(self) -> float:
        """The mean difference of a weight; infinity with NaN, so where that begins comes first."""
        return float(np.nan_to_num(np.abs(self.sides[1] - self.sides[0]), nan=np.inf).mean())


def changed_maps(found: MistakeResult, config: ModelConfig) -> list[ChangedMap]:
    """The maps that a mistake changes, the most changed first."""
    maps = []
    for one in anatomy(config).attentions:
        for layer in range(one.n_layers):
            both = [None if read is None else read.values.get(one.site(layer, "weights")) for read in found.reads]
            there = [values for values in both if values is not None]  # [H, Q, K] each
            if len(there) == len(both) and there[0].shape == there[1].shape:
                heads = zip(*there, strict=True)
                maps += [ChangedMap(one, layer, head, sides) for head, sides in enumerate(heads)]
            elif len(there) == len(both):
                maps.append(ChangedMap(one, layer, None, tuple(values.mean(axis=0) for values in there)))
    return sorted((one for one in maps if one.apart > _LEAST), key=lambda one: -one.apart)


def map_pair(found: MistakeResult, chosen: ChangedMap) -> list[Plot]:
    """A map on both sides."""
    one, right, drawn = chosen.attention, found.right, []
    reads = (*right.read_tokens[: right.first_row + 1], *(right.vocabulary[i] for i in found.ids[:-1]))
    tokens = {"encoder": right.src_tokens, "decoder": reads}
    for side, read, weights in zip(SIDES, found.reads, chosen.sides, strict=True):
        assert read is not None  # a changed map is of both
        closing = read.values[one.site(chosen.layer, "mask")]  # [1 or H, Q, K]
        title = say("{side}: {what}", side=side, what=chosen.name)
        figure = heatmap_spec(
            weights,
            queries=tokens[one.stack],
            keys=tokens[one.keys_from],
            title=title,
            # Some mistakes give weight to a key that the mask closes: that is drawn, as all that was computed.
            allowed=closing[min(chosen.head or 0, len(closing) - 1)] | (weights != 0),
            colour="source" if one.keys_from == "encoder" else "target",
            limits=None if ((weights < 0) | (weights > 1.01)).any() else (0.0, 1.0),
            rows_sum_to_one=False,
            query_axis=say("Reads"),
            key_axis=say("Looks at"),
        )
        alt = say("{map}. Rows: {rows}; columns: {columns}.", map=title, rows=say("Reads"), columns=say("Looks at"))
        drawn.append(Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ))
    return drawn


# ------------------------------------------------------------------------------------------------ the card


def draw(run: OpenRun) -> None:
    """Draw the chosen card, of which the run is the right side."""
    checkpoint, query, asked = run.checkpoint, run.trace.query, run.view.of(EffectsLook).mistake
    name, there, first = OLD.get(asked, asked), shown(checkpoint.config), None
    if name not in texts():
        if name != EffectsLook.mistake:
            said = say(
                "“{name}” in the link is “{text}”, which is not a valid choice; {default} is used instead.",
                name=MISTAKE,
                text=asked,
                default=EffectsLook.mistake,
            )
            drawing.notes([said])
        first = attempt(lambda: opening(checkpoint, query))
        name = first.names[0] if first is not None else next(iter(there), "")
    one = _choose(run, name, first) if there else None
    if one is not None:
        reference = run.link.reference or checkpoint.card.reference_of(query.source)
        found = attempt(lambda: look(checkpoint, one, query, reference))
        if found is not None:
            _result(name, found, run)
    else:
        why = say(
            "This mistake cannot be made in a run of this model: the model has no such part, or it is a mistake of "
            "training alone. Choose another mistake."
        )
        why = why if there else say("This encoder-only model generates no output, so no output can go wrong.")
        st.info(why, icon=":material/info:")
        drawing.explain(*([texts()[name].about] if name else []))
    if name:
        _code(name, run)


def _choose(run: OpenRun, name: str, first: Variant | None) -> Variant | None:
    """Draw the menu of mistakes, and that of the ways of one; None if it has none in this model."""
    there, slot, changes = shown(run.checkpoint.config), run.slot, _changes(run)
    order = sorted(there, key=lambda one: not changes[one])
    order = order if name in there else [name, *order]
    titles: dict[str, str] = {one: texts()[one].title for one in order}
    for one in there:
        if not changes[one]:
            titles[one] = say("{mistake} – changes nothing in this sentence", mistake=titles[one])
    ways = {write(one.changes): one for one in there.get(name, ())}
    kept = replace(controls.field(slot, MISTAKE, forgets=("variant", "changed_map")), value=name)
    way = controls.field(slot, "variant")
    if way.value not in ways:
        way = replace(way, value=write(first.changes) if first is not None else next(iter(ways), ""))
    with controls.bar(slot):
        controls.menu(kept, say("Mistake"), titles, bare=True, width=540)
        place = order.index(name)
        for key, label, icon, others in (
            ("mistake_before", say("Previous mistake"), ":material/chevron_left:", order[:place][-1:]),
            ("mistake_after", say("Next mistake"), ":material/chevron_right:", order[place + 1 :][:1]),
        ):
            st.button(label, key=f"{slot}{key}", icon=icon, disabled=not others, on_click=kept.take, args=others)
        if len(ways) > 1:
            told = {address: one.told for address, one in ways.items()}
            controls.menu(way, say("How it is made"), told, bare=True, width=540)
    return ways.get(way.value)


def _changes(run: OpenRun) -> dict[str, bool]:
    """Whether each mistake changes the output; until that is known it may, and then the page is drawn again."""
    there, key, visitor = shown(run.checkpoint.config), ("mistakes", run.trace.query), loading.visitor()
    with suppress(BusyError):
        studies().ask(key, partial(all_changes, run.checkpoint, run.trace.query), visitor=visitor)
    seen = studies().look(key, visitor, patience=PATIENCE_SECONDS)
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key)
    told = [] if seen is None else [one for one in (seen.result, seen.so_far) if one is not None]
    return dict(zip(there, map(bool, next(iter(told), [True] * len(there))), strict=True))


def _follow(key: Hashable) -> None:
    """Draw nothing until all is known."""
    seen = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()


def _result(name: str, found: MistakeResult, run: OpenRun) -> None:
    maps, kept = changed_maps(found, run.checkpoint.config), controls.field(run.slot, "changed_map")
    chosen = next((one for one in maps if one.address == kept.value), next(iter(maps), None))
    _told(found)
    drawing.explain(texts()[name].about)
    _links(name, found, chosen, run)
    if any(found.reads):
        _chart(losses(found), f"{LOSSES}_{name}", run)
    if chosen is not None:
        names = {one.address: one.name for one in maps}
        controls.menu(replace(kept, value=chosen.address), say("Map, the most changed first"), names, width=480)
        pair = enumerate(map_pair(found, chosen))
        drawing.beside(*(partial(_chart, plot, f"{MAP}_{name}_{n}", run) for n, plot in pair), gap="medium")
    elif not all(read is not None and read.values for read in found.reads):
        st.caption(say("The maps are not compared: a side cannot read the output, or its maps are too large."))


def _told(found: MistakeResult) -> None:
    columns, traces = st.columns(2, gap="small"), (found.right, found.wrong)
    for column, label, trace, read in zip(columns, SIDES, traces, found.reads, strict=True):
        with column, st.container(border=True):
            st.caption(label)
            st.markdown(say("“{output}”", output=NOTHING) if trace is None else output(trace, found.first))
            finite = read is not None and read.mean_loss == read.mean_loss
            loss = digits(read.mean_loss) if read is not None and finite else NOTHING
            st.metric(say("Loss"), loss, label_visibility="collapsed", width="content")
    what = say("Loss of the correct output, in nats per token")
    what = what if found.is_reference else say("Loss of the output without the mistake, in nats per token")
    st.caption(what, help=say("The model reads all of the output in one pass, as in training."))
    st.markdown(drawing.plain(found.said))


def output(trace: Trace, first: int | None) -> str:
    """An output in Markdown, with the first different piece marked: its place from 0; None if there is none."""
    whole, plain = trace.output_text, drawing.plain
    if not whole.strip() and trace.n_steps > 1:  # pieces without text
        shown = [*trace.tgt_tokens[:MOST_PIECES], *["…"] * (trace.n_steps > MOST_PIECES)]
        return say("“{output}”", output=plain(" ".join(shown)))
    if first is None:
        return say("“{output}”", output=plain(whole))
    start, end = ("", *trace.texts)[first], (*trace.texts, whole)[first]
    if not end.startswith(start) or not whole.startswith(end):  # spelling that a later piece changed
        start, end = "", whole
    piece, rest = end[len(start) :] or "".join(trace.tgt_tokens[first : first + 1]), whole[len(end) :]
    marked = f":orange-background[{plain(piece)}]" if piece.strip() else ""
    spaces = [" " * one.startswith(" ") for one in (piece, rest)]
    return say("“{output}”", output=f"{plain(start)}{spaces[0]}{marked}{spaces[1]}{plain(rest)}")


def _links(name: str, found: MistakeResult, chosen: ChangedMap | None, run: OpenRun) -> None:
    """Draw where the mistake can be seen in other ways."""
    view, page = run.view.but(query=None, key=None), texts()[name].page
    right = replace(run.link, job="", interventions=found.right.query.interventions, view=view)
    wrong = replace(right, interventions=found.asked.interventions)
    with st.container(horizontal=True, vertical_alignment="center"):
        there = comparing(right, with_=wrong)
        menu.link("compare", say("Compare both runs, step by step"), there, icon=":material/compare_arrows:")
        if page in PAGES:
            head = {} if chosen is None else {"kind": chosen.attention.kind, "layer": chosen.layer, "head": chosen.head}
            part = {"panel" if page == "attention" else f"{page}_panel": texts()[name].panel}
            there = replace(wrong, view=view.but(**head, **part))
            menu.link(page, say("See it in {page}", page=PAGES[page]), there, icon=":material/arrow_forward:")
        entry = loading.usable().get(TRAINED_SO.get(name, ""))
        if entry is not None and entry.name != run.checkpoint.name:
            source = run.link.source if run.link.source in entry.examples else next(iter(entry.examples), None)
            trained = Link(model=entry.name, source=source, view=view.but(mistake=name, variant="", changed_map=""))
            menu.ways([("wrong", say("A model that was trained so"), write_link(trained))])


def _chart(plot: Plot, key: str, run: OpenRun) -> None:
    drawing.chart(plot.spec, key=run.key(key), alt=plot.alt, how_to_read=plot.how_to_read)


def _code(name: str, run: OpenRun) -> None:
    """Draw the code of a mistake, and links to those that look like it."""
    said, there = texts()[name], shown(run.checkpoint.config)
    with st.expander(say("In code"), type="compact"):
        drawing.codes((say("A beginner's version"), said.wrong), (say("The correct version"), said.right))
        st.caption(said.source)
    link = replace(run.link, job="")
    view = run.view.but(variant="", changed_map="")
    alike = {one: replace(link, view=view.but(mistake=one)) for one in said.alike if one in there}
    if alike:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(say("Looks like:"), width="content")
            menu.ways([("wrong", texts()[one].title, write_link(link)) for one, link in alike.items()])
