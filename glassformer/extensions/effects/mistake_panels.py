"""The page What goes wrong: one card for any mistake of the catalogue, with both outputs, losses, maps and code."""

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.mistake_charts import SIDES, ChangedMap, changed_maps, losses, map_pair
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
from transformer.runs.interventions import write
from transformer.runs.trace import Trace

MISTAKE: Final = "mistake"  # the field
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
