"""The page Over a corpus: menus of run, head and measure, the open run, card of a line, tables of lines and heads.

The line has its texts, its numbers, and a link to its map on the Attention page, at the head, the step and the cell of
the head's largest weight.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from glassformer.extensions.corpus import corpora
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.corpus_pictures import CORPUS, CorpusScene, looked_at
from glassformer.extensions.corpus.library import queries
from glassformer.extensions.corpus.library.folder import Run, summaries
from glassformer.extensions.corpus.library.queries import Head, HeadSummary, Hit, PeakPosition, Whole
from glassformer.extensions.sentences.line_table import marked, open_line, opening_rows
from glassformer.extensions.sentences.sentences_look import MAX_LINE, SentencesLook
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import KIND_NAMES, head_of_kind
from glassformer.runs.run_address import REVISION_LENGTH
from glassformer.runs.show import choose_part
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.controls import ControlBinding
from glassformer.shared.csv_export import Origin
from glassformer.shared.i18n import frame, here, st
from glassformer.state import session
from glassformer.state.link import DEFAULT_NEW, Link
from glassformer.state.view import MAIN, View
from transformer.checkpoint.load import Checkpoint
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import anatomy
from transformer.runs.inputs import read_given
from transformer.runs.query import MAX_NEW

COMMAND: Final = "python -m transformer corpus {folder} --pairs FILE --out DIR"
SETTING: Final = "streamlit run app.py -- --corpora DIR\nGLASSFORMER_CORPORA=DIR"


RUN: Final = "corpus_run"
OF_HEADS: Final = ("heads", "head", "beside")  # parts that show one measure


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page; `checkpoint` is the one that is chosen, which need not be that of the corpus run."""
    found, problems = corpora.listed()
    for problem in problems:
        st.warning(drawing.with_code(problem), icon=":material/folder_off:")
    if not found:
        _how_to_make_one(checkpoint)
        return
    run = _chosen(found, checkpoint)
    st.caption(drawing.plain(told(run, checkpoint)))
    scene = attempt(lambda: _scene(run, checkpoint))
    if scene is None:
        return
    with controls.bar(MAIN):
        part = choose_part(CORPUS, MAIN)
        if part == "heads":
            choose_kind(scene)
        if part in ("head", "joined", "beside"):
            choose_head(scene)
        if part in OF_HEADS:
            choose_measure(scene)
    cover_box.part(lambda: attempt(lambda: CORPUS.listed()[part].draw(OpenCorpus(run, scene, checkpoint))))


# ------------------------------------------------------------------------------------------------ which run


def _how_to_make_one(checkpoint: Checkpoint) -> None:
    """What a corpus run is, and how one is made."""
    st.markdown(
        say(
            "A corpus run measures every head of a model on each line of a file, for example 100,000 sentences. This "
            "page shows what the heads do over all these lines, with 95 % intervals, and leads to single sentences."
        )
    )
    st.markdown(say("Measure a file, which has one source per line, then a tab and its reference:"))
    entry = loading.found(str(st.session_state.get(session.MODEL) or ""))
    folder = shlex.quote(f"checkpoints/{checkpoint.name}" if entry is None else str(entry.folder))
    st.code(COMMAND.format(folder=folder), language="sh")
    st.markdown(say("Then tell the app where it is, as an option or in the environment:"))
    st.code(SETTING, language="sh")
    where = corpora.folders()
    if where:
        said = say_n(
            "There is no corpus run yet in this folder: {names}.",
            "There is no corpus run yet in these folders: {names}.",
            len(where),
            names=joined(", ", map(str, where)),
        )
        st.caption(drawing.plain(said))


def _chosen(found: Sequence[Run], checkpoint: Checkpoint) -> Run:
    """Draw the choice of a run; one that there is not is let go and said."""
    asked, names = session.view(MAIN).of(CorpusLook).corpus_run, {run.key: run for run in found}
    own = next((run.key for run in found if run.about.content_hash == checkpoint.content_hash), found[0].key)
    if asked and asked not in names:
        drawing.notes([say("There is no corpus run “{name}” here; another one is shown.", name=asked)])
        session.replace(MAIN, corpus_run="")
    labels: dict[str, Sentence] = {
        key: say(
            "{checkpoint}: {file} · {state}",
            checkpoint=name_of(run),
            file=joined(", ", run.about.files),
            state=lines_of(run),
        )
        for key, run in names.items()
    }
    key = controls.menu(
        controls.field(MAIN, "corpus_run", key=RUN, forgets=("line", "leaf", "bound")),
        say("Corpus run"),
        labels,
        otherwise=own,
        bare=True,
        width=460,
    )
    return names[key]


def lines_of(run: Run) -> Sentence:
    """How many lines it has, and how many of them are there."""
    if run.about.complete or run.lines_done >= run.about.lines:
        return say_n("{n:,} line", "{n:,} lines", run.about.lines)
    return say("{n:,} of {all:,} lines so far", n=run.lines_done, all=run.about.lines)


def told(run: Run, checkpoint: Checkpoint) -> Sentence:
    """How a run was measured, and whether on another checkpoint than the chosen one."""
    about = run.about
    how = say("Measured while the model read the reference.")
    if about.options.decode:
        how = say("Measured on the model's own greedy output.")
    if about.content_hash == checkpoint.content_hash:
        return how
    other = say("This run is of the checkpoint {name}, not of the one chosen in the sidebar.", name=about.checkpoint)
    return joined(" ", [how, other])


# ------------------------------------------------------------------------------------------------ what is looked at


def _scene(run: Run, checkpoint: Checkpoint) -> CorpusScene | None:
    found = summaries(run)
    if not found:
        st.info(say("No line of this corpus run could be measured."), icon=":material/info:")
        return None
    parts = anatomy(checkpoint.config) if checkpoint.content_hash == run.about.content_hash else None
    scene = CorpusScene(found, parts, session.view(MAIN))
    layers, heads = scene.size(scene.kind)
    controls.let_go(MAIN, layers, heads)
    return scene


# ------------------------------------------------------------------------------------------------ an open run

OPENED: Final = "corpus_line"
READING: Final = say("Reading the corpus run…")


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """What a part of the page is drawn of. A session must not keep it."""

    run: Run
    scene: CorpusScene
    chosen: Checkpoint  # in the sidebar

    @cached_property
    def line(self) -> Whole | None:
        """The selected line; None if there is none, or it is missing. Errors as of `queries.search`."""
        number = self.scene.view.of(SentencesLook).line
        return None if number is None or not queries.is_installed() else corpora.line(self.run, number + 1)

    @property
    def of_head(self) -> HeadSummary | None:
        """What the selected head did with that line."""
        head = self.scene.key.whose
        ones = self.line.heads if self.line else ()
        return next((one for one in ones if (one.place.kind, one.place.layer, one.place.head) == head), None)

    def whose(self) -> tuple[str, Checkpoint] | None:
        """The checkpoint that was measured and its name in an address; None if it is not here, or has changed."""
        about = self.run.about
        if self.chosen.content_hash == about.content_hash:
            return str(st.session_state.get(session.MODEL) or ""), self.chosen
        entry = loading.found(about.checkpoint)
        opened = None if entry is None else attempt(lambda: loading.open_checkpoint(entry))
        if opened is None or opened.content_hash != about.content_hash:
            return None
        return about.checkpoint, opened


def can_ask() -> bool:
    """Whether single lines can be asked about; says so if not."""
    if not queries.is_installed():
        st.info(drawing.with_code(queries.NEEDS_DUCKDB), icon=":material/info:")
        return False
    return True


def choose_line(corpus: OpenCorpus) -> None:
    """Draw a box for the number of a line, as a table needs a mouse to be pressed; says if the line is not there."""
    kept = controls.field(MAIN, "line", key="corpus_line_number")
    controls.number(kept, say("Open line"), MAX_LINE, width=150, bare=True)
    number = corpus.scene.view.of(SentencesLook).line
    if number is not None and attempt(lambda: corpus.line) is None:
        st.info(say("This corpus run has no line {n:,}.", n=number + 1), icon=":material/info:")


def card(corpus: OpenCorpus, *, at_head: bool, place: PeakPosition | None = None, name: str = "") -> None:
    """Draw the selected line, if any, with links to a place, the head or its worst step; `name`: which of two runs."""
    found = attempt(lambda: corpus.line)
    if found is None:
        return
    hit, one = found.hit, corpus.of_head if at_head else None
    with st.container(border=True, key=f"{OPENED}{corpus.run.key if name else ''}"):
        of = [drawing.strong(name)] if name else []
        st.markdown(joined("  \n", [*of, *_told(corpus, hit, one)]))
        if found.sentence["problem"]:
            st.error(drawing.with_code(str(found.sentence["problem"])))
            return
        whose = corpus.whose()
        if whose is None:
            about = corpus.run.about
            said = say(
                "The checkpoint that was measured, {name} ({hash}), is not among the checkpoints of this app, so the "
                "line cannot be opened on other pages.",
                name=about.checkpoint,
                hash=about.content_hash[:REVISION_LENGTH],
            )
            st.info(drawing.with_code(said), icon=":material/info:")
            return
        place = place or (None if one is None else one.place)
        link = link_to(*whose, hit, place, decoded=corpus.run.about.options.decode)
        with st.container(horizontal=True, gap="medium"):
            menu.link("attention", say("Open this line on Attention"), link, icon=":material/grid_on:")
            menu.link("step", say("Translate"), link, icon=":material/play_arrow:")
            if link.reference and anatomy(whose[1].config).writes:
                menu.link("forcing", say("Teacher forcing"), link, icon=":material/school:")


def _told(corpus: OpenCorpus, hit: Hit, one: HeadSummary | None) -> Iterator[str]:
    yield say("**Line {n}**", n=hit.line)
    yield say("**Source:** {text}", text=drawing.plain(hit.source))
    if hit.output is not None:
        yield say("**Output:** {text}", text=drawing.plain(hit.output))
    if hit.target is not None:
        yield say("**Reference:** {text}", text=drawing.plain(hit.target))
    if hit.loss is not None and hit.worst_rank is not None:
        yield say(
            "Loss per token: {loss:.3f} nats. Largest rank of a token: {rank:,}, at step {step}.",
            loss=hit.loss,
            rank=hit.worst_rank,
            step=(hit.worst_step or 0) + 1,
        )
    scene = corpus.scene
    value = None if one is None else one.values[scene.measure]
    if one is not None and value is not None:
        name = head_of_kind(scene.kind, *scene.head)
        yield say("{head}: {measure} {value:.3f}.", head=name, measure=scene.words.full_title, value=value)
    if one is not None and one.place.weight is not None:
        yield _peak(one.place)


def _peak(place: PeakPosition) -> Sentence:
    return say(
        "Its largest weight is {weight:.3f}, from {query} (row {row}) to {key} (column {column}).",
        weight=place.weight,
        query=drawing.plain(place.query_piece or ""),
        row=(place.query or 0) + 1,
        key=drawing.plain(place.key_piece or ""),
        column=(place.key or 0) + 1,
    )


def link_to(name: str, checkpoint: Checkpoint, hit: Hit, place: PeakPosition | None, *, decoded: bool) -> Link:
    """What other pages shall show: the line as it was measured, at a head's largest weight or at its worst step."""
    forced = () if decoded else _forced(checkpoint, hit)
    # A text without a reference is a prompt; its pieces are not steps.
    looked: dict[str, Any] = {"step": hit.worst_step or 0 if decoded or forced else 0}
    if place is not None:
        looked = {"step": place.step or 0, "kind": place.kind, "layer": place.layer - 1, "head": place.head - 1}
        looked |= {"query": place.query, "key": place.key, "panel": "head"}
    return Link(
        model=name,
        revision=checkpoint.content_hash[:REVISION_LENGTH],
        source=hit.source,
        reference=hit.target or None,
        forced=forced,
        max_new=min(max(DEFAULT_NEW, len(forced)), MAX_NEW, checkpoint.config.max_len),
        view=View().but(**looked),
    )


def _forced(checkpoint: Checkpoint, hit: Hit) -> tuple[int, ...]:
    """The ids of the reference, which was read; none where there is none, or it cannot be read any more."""
    if hit.target is None:
        return ()
    try:
        given = read_given(checkpoint, checkpoint.query(hit.source), hit.target)
    except QueryError:
        return ()
    return (*given.before[given.n_prompt :], *given.ids)


def name_of(run: Run) -> Sentence | str:
    """What a run is called beside another one."""
    if run.about.options.decode:
        return say("{checkpoint} (own output)", checkpoint=run.about.checkpoint)
    return run.about.checkpoint


# ------------------------------------------------------------------------------------------------ what is chosen


def of(name: str, *forgets: str) -> ControlBinding:
    """A field of the view whose change begins with the first page of what is found again."""
    return controls.field(MAIN, name, key=f"corpus_{name}", forgets=("leaf", *forgets))


def choose_kind(scene: CorpusScene) -> None:
    """Draw the choice of an attention, if there are several."""
    kinds = {kind: KIND_NAMES[kind] for kind in scene.kinds}
    if len(kinds) > 1:
        controls.menu(of("kind"), say("Attention"), kinds, otherwise=scene.kind, bare=True, width=185)


def choose_head(scene: CorpusScene) -> None:
    """Draw the choices of an attention, a layer and a head."""
    choose_kind(scene)
    layers, heads = scene.size(scene.kind)
    controls.menu_of_layers(replace(of("layer"), value=scene.head[0]), layers, all_together=False)
    controls.menu_of_heads(replace(of("head"), value=scene.head[1]), heads, all_together=False)


def choose_measure(scene: CorpusScene) -> None:
    """Draw the choice of a measure."""
    names = {name: scene.spoken[scene.kind][name].heading for name in scene.names(scene.kind)}
    kept = of("corpus_measure", "bound")
    controls.menu(kept, say("Measure"), names, otherwise=scene.measure, bare=True, width=145)


# ------------------------------------------------------------------------------------------------ tables


Heading = tuple[str, str]
"""The heading of a column of numbers, and how they are written."""

_MOST_HEADS: Final = 12  # without scrolling
_TEXT_WIDTH, _PLACE_WIDTH, _OPEN_WIDTH, _HEAD_WIDTH = 260, 130, 62, 270


def of_heads(
    key: str,
    press: str,
    heads: Sequence[Head],
    chosen: Head,
    part: str,
    *,
    shown: Mapping[str, Sequence[Any]],
    looks: Mapping[str, Any],
    alt: str,
) -> None:
    """Draw a row for each head; the button `press` opens it in a part of the page."""

    def look(head: Head) -> None:
        kind, layer, number = head
        session.replace(MAIN, **looked_at(kind, layer - 1, number - 1, part))

    named = [head_of_kind(kind, layer - 1, head - 1) for kind, layer, head in heads]
    opens = [say("● {name}", name=name) if one == chosen else name for one, name in zip(heads, named, strict=True)]
    button = drawing.opening(press, say("Head"), heads, look, type="tertiary", width=_HEAD_WIDTH, alignment="left")
    opening_rows(key, shown, looks, opens=opens, button=button, alt=alt, most=_MOST_HEADS)


def table(key: str, hits: Sequence[Hit], values: Sequence[Heading], alt: str) -> None:
    """Draw lines; `values` are the headings of what was looked at, one for each number of a line."""
    numbers, chosen = [one.line for one in hits], session.view().of(SentencesLook).line
    opens = marked(numbers, None if chosen is None else chosen + 1)
    press = f"{key}_open"
    button = drawing.opening(press, say("Line"), numbers, open_line, type="tertiary", width=_OPEN_WIDTH)
    shown = columns(hits, len(values))
    looks = _looks(values)
    names = [name for name in looks if any(cell is not None for cell in shown[name])]
    shown, looks = ({name: of[name] for name in names} for of in (shown, looks))
    opening_rows(key, shown, looks, opens=opens, button=button, alt=alt)


def columns(hits: Sequence[Hit], n_values: int) -> dict[str, list[Any]]:
    """The cells of a table of lines, by column."""
    found: dict[str, list[Any]] = {"line": [one.line for one in hits]}
    found |= {f"value {i + 1}": [one.values[i] for one in hits] for i in range(n_values)}
    found["place"] = [None if one.place is None else _largest(one.place) for one in hits]
    found |= {name: [getattr(one, name) for one in hits] for name in ("source", "output", "target")}
    return found | {"loss": [one.loss for one in hits], "worst_rank": [one.worst_rank for one in hits]}


def _largest(place: PeakPosition) -> str | None:
    """Where the largest weight is; pieces are data and no sentence."""
    return None if place.weight is None else f"{place.query_piece} → {place.key_piece} {hundredths(place.weight)}"


def _looks(values: Sequence[Heading]) -> dict[str, Any]:
    kinds = st.column_config
    looks: dict[str, Any] = {
        f"value {i + 1}": kinds.NumberColumn(here(said), format=form, width=max(74, 30 + 7 * len(here(said))))
        for i, (said, form) in enumerate(values)
    }
    looks["place"] = kinds.TextColumn(
        here(say("Largest weight")), width=_PLACE_WIDTH, help=here(say("From which query to which key."))
    )
    texts = {"source": say("Source"), "output": say("Output"), "target": say("Reference")}
    looks |= {name: kinds.TextColumn(here(said), width=_TEXT_WIDTH) for name, said in texts.items()}
    help = here(say("Mean loss per token, in nats."))
    looks["loss"] = kinds.NumberColumn(here(say("Loss")), format="%.3f", width=70, help=help)
    looks["worst_rank"] = kinds.NumberColumn(
        here(say("Rank")),
        format="localized",
        width=70,
        help=here(say("The largest rank of a token that was predicted; 1 is the model's first choice.")),
    )
    return looks


def csv_button(run: Run, table: Any, *, key: str, title: Sentence) -> None:
    """Draw the button that saves rows or columns of a run, or what a function makes of it; as `drawing.csv_button`."""
    made = table if callable(table) else frame(table)
    drawing.csv_button(made, key=key, title=title, of=Origin(checkpoint=run.about.checkpoint, chart=here(title)))
