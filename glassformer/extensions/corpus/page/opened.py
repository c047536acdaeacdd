"""A corpus run that is open: what every part of the page is drawn of, and the line of it that is looked at.

The line stands by itself: its texts, its numbers, and the way to its map on the Attention page, at the head, the step
and the cell of the head's largest weight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from glassformer.extensions.corpus.library import database
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.queries import Hit, OfHead, Place, Whole
from glassformer.extensions.corpus.page import asking
from glassformer.extensions.corpus.page.corpus_pictures import Scene, head_name
from glassformer.extensions.sentences.sentences_look import MAX_LINE, SentencesLook
from glassformer.runs import loading
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import REVISION_LENGTH
from glassformer.shared import choices, drawing, menu
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.link import DEFAULT_NEW, Link
from glassformer.state.view import MAIN, View
from transformer.checkpoint.load import Checkpoint
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.query import MAX_NEW
from transformer.runs.targets import read_given

OPENED: Final = "corpus_line"
NEEDS_DUCKDB: Final = say(
    "To ask about single lines, this page needs DuckDB, which is not installed. Install it with "
    "pip install 'glassformer[corpus]' and start the app again."
)


@dataclass(frozen=True, eq=False)
class OpenCorpus:
    """What a part of the page is drawn of. A session must not keep it."""

    run: Run
    scene: Scene
    chosen: Checkpoint  # in the sidebar

    @cached_property
    def line(self) -> Whole | None:
        """The line that is looked at; None if there is none, or it is not there. Errors as of `queries.search`."""
        number = self.scene.view.of(SentencesLook).line
        return None if number is None or not database.is_installed() else asking.line(self.run, number + 1)

    @property
    def of_head(self) -> OfHead | None:
        """What the head that is looked at did with that line."""
        head = (self.scene.key.kind, self.scene.key.layer, self.scene.key.head)
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


def look_at(line: int) -> None:
    """Callback: look at a line, by its number from 1."""
    session.replace(MAIN, line=line - 1)


def choose_line(corpus: OpenCorpus) -> None:
    """Draw a box for the number of a line, as a table needs a mouse to be pressed; says if the line is not there."""
    kept, help = choices.field(MAIN, "line", key="corpus_line_number"), say("A line's number in the file, from 1.")
    choices.number(kept, say("Open line"), MAX_LINE, placeholder=say("Open line"), help=help, width=150, bare=True)
    number = corpus.scene.view.of(SentencesLook).line
    if number is not None and attempt(lambda: corpus.line) is None:
        st.info(say("This corpus run has no line {n:,}.", n=number + 1), icon=":material/info:")


def card(corpus: OpenCorpus, *, at_head: bool, place: Place | None = None, name: str = "") -> None:
    """Draw the line that is looked at, if any, and the ways to it: at a place, the chosen head or its worst step.

    `name` says of which of two runs it is.
    """
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
            st.info(drawing.plain(_not_here(corpus)), icon=":material/info:")
            return
        place = place or (None if one is None else one.place)
        _ways(whose, link_to(*whose, hit, place, decoded=corpus.run.about.options.decode))


def _not_here(corpus: OpenCorpus) -> Sentence:
    about = corpus.run.about
    return say(
        "The checkpoint that was measured, {name} ({hash}), is not among the checkpoints of this app, so the line "
        "cannot be opened on other pages.",
        name=about.checkpoint,
        hash=about.content_hash[:REVISION_LENGTH],
    )


def _told(corpus: OpenCorpus, hit: Hit, one: OfHead | None) -> Iterator[str]:
    yield say("**Line {n}**", n=hit.line)
    yield say("**Source:** {text}", text=drawing.plain(hit.source))
    if hit.output is not None:
        yield say("**Output:** {text}", text=drawing.plain(hit.output))
    if hit.target is not None:
        yield say("**Reference:** {text}", text=drawing.plain(hit.target))
    if hit.loss is not None and hit.worst_rank is not None:
        yield say(
            "Loss per piece: {loss:.3f} nats. Largest rank of a piece: {rank:,}, at step {step}.",
            loss=hit.loss,
            rank=hit.worst_rank,
            step=(hit.worst_step or 0) + 1,
        )
    scene = corpus.scene
    value = None if one is None else one.values[scene.measure]
    if one is not None and value is not None:
        name = head_name(scene.kind, *scene.head)
        yield say("{head}: {measure} {value:.3f}.", head=name, measure=scene.words.full_title, value=value)
    if one is not None and one.place.weight is not None:
        yield _peak(one.place)


def _peak(place: Place) -> Sentence:
    return say(
        "Its largest weight is {weight:.3f}, from {query} (row {row}) to {key} (column {column}).",
        weight=place.weight,
        query=drawing.plain(place.query_piece or ""),
        row=(place.query or 0) + 1,
        key=drawing.plain(place.key_piece or ""),
        column=(place.key or 0) + 1,
    )


def _ways(whose: tuple[str, Checkpoint], link: Link) -> None:
    of_head = link.view.head is not None
    with st.container(horizontal=True, gap="medium"):
        said = say("Open this head's map on Attention") if of_head else say("Open this line on Attention")
        menu.link("attention", said, link, icon=":material/grid_on:")
        menu.link("step", say("Step through decoding"), link, icon=":material/play_arrow:")
        if link.reference and anatomy(whose[1].config).writes:
            menu.link("forcing", say("Teacher forcing"), link, icon=":material/school:")


def link_to(name: str, checkpoint: Checkpoint, hit: Hit, place: Place | None, *, decoded: bool) -> Link:
    """What other pages shall show: the line as it was measured, at a head's largest weight or at its worst step."""
    forced = () if decoded else _forced(checkpoint, hit)
    # A text without a reference is a prompt, of which no piece is a step.
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
