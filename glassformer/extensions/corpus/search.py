"""Part "Search": a form of conditions (head measures, ranks, losses, text), lines found, in pages and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.extensions.corpus import corpora, open_corpus_run
from glassformer.extensions.corpus.corpus_look import CorpusLook, Sought, TextIn
from glassformer.extensions.corpus.corpus_pictures import CorpusScene
from glassformer.extensions.corpus.library import queries
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.queries import Asked, Condition, Contains, Disagrees, LooksAt, OfSentence
from glassformer.extensions.corpus.open_corpus_run import (
    Heading,
    OpenCorpus,
    can_ask,
    card,
    choose_head,
    choose_line,
    choose_measure,
    of,
)
from glassformer.runs.error_boundary import attempt
from glassformer.shared import controls
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.fields import LONGEST_NAME, MAX_STEP
from glassformer.state.view import MAIN
from transformer.i18n import Sentence, say, say_n

TABLE, CSV, PAGES = "corpus_found", "corpus_found_csv", "corpus_pages"
A_PAGE: Final = 25  # lines
MOST_SAVED: Final = 10_000
SOUGHT: Final[Mapping[Sought, Sentence]] = {
    "any": say("Whatever the heads do"),
    "punctuation": say("A head's largest weight is on punctuation"),
    "piece": say("A head's largest weight is on this token"),
    "measure": say("A measure of a head"),
    "attends": say("A head attends much but matters little"),
    "owes": say("A head attends little but matters much"),
}
PROPOSED: Final = 0.5  # as a bound
PROPOSED_WEIGHT: Final = 0.6
WHAT_DISAGREES: Final = say(
    "How much the head attends (its share of the output norm) and how much the output loses without it are ranked "
    "among all lines, each from 0 to 1. The number is the difference of the two ranks."
)
TEXTS: Final[Mapping[TextIn, Sentence]] = {
    "source": say("in the source"),
    "target": say("in the reference"),
    "output": say("in the output"),
}

_Asked = tuple[Condition, Heading]


def draw(corpus: OpenCorpus) -> None:
    """Draw the part."""
    if not can_ask():
        return
    conditions, headings = _conditions(corpus.run, corpus.scene)
    if not conditions:
        st.info(say("Choose at least one condition above."), icon=":material/filter_list:")
        return
    page = session.view(MAIN).of(CorpusLook).leaf
    found = attempt(lambda: corpora.search(corpus.run, tuple(conditions), n=A_PAGE, offset=page * A_PAGE))
    if found is None:
        return
    if not found.total:
        st.info(say("No line fits all conditions."), icon=":material/filter_list:")
        return
    st.markdown(
        say_n("**{n:,} line** of {all:,}.", "**{n:,} lines** of {all:,}.", found.total, all=corpus.run.lines_done)
    )
    choose_line(corpus)
    card(corpus, at_head=any(isinstance(one, queries.OfHead) for one in conditions))
    title = say("lines of a corpus that were searched for")
    open_corpus_run.table(TABLE, found.hits, headings, title)
    _pages(found.total)
    st.caption(say("Click a number to open that line. Click a column heading to sort by it."))
    saved = partial(_saved, corpus.run, tuple(conditions))
    open_corpus_run.csv_button(corpus.run, saved, key=CSV, title=title)


def _saved(run: Run, conditions: Sequence[Condition]) -> Mapping[str, Any]:
    """The columns of all lines that fit, but for those after many."""
    found = queries.search(run, conditions, n=MOST_SAVED).hits
    return open_corpus_run.columns(found, len(conditions))


def _pages(total: int) -> None:
    pages = min(-(-total // A_PAGE), MAX_STEP)
    if pages > 1:
        kept = controls.field(MAIN, "leaf")
        controls.number(kept, say("Page"), pages, width=140)


# ------------------------------------------------------------------------------------------------ the form


def _conditions(run: Run, scene: CorpusScene) -> tuple[list[Condition], list[Heading]]:
    """Draw the form; the conditions that are asked for, that of a head first, and what each looked at."""
    found: list[_Asked] = []
    with st.container(border=True, key="corpus_form"):
        found += _of_head(run, scene)
        with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="corpus_of_lines"):
            found += _of_lines(run)
    return [one for one, _ in found], [said for _, said in found]


def _of_head(run: Run, scene: CorpusScene) -> list[_Asked]:
    known = {name: said for name, said in SOUGHT.items() if run.about.options.effect or name not in ("attends", "owes")}
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="corpus_of_a_head"):
        kept = controls.field(MAIN, "sought", forgets=("bound", "below", "leaf", "line"))
        sought = controls.menu(kept, say("What a head does"), known, width=330)
        if sought == "any":
            return []
        choose_head(scene)
        if sought == "piece":
            controls.typed(of("looked_at"), say("Token, such as “the”"), most=LONGEST_NAME, width=150)
        if sought == "measure":
            choose_measure(scene)
            sides = {False: say("at least"), True: say("at most")}
            controls.menu(of("below"), say("Bound"), sides, bare=True, width=110)
        bound = _bound(sought, scene)
    if sought in ("attends", "owes"):
        st.caption(WHAT_DISAGREES)
    return _asked(sought, scene, bound)


def _bound(sought: Sought, scene: CorpusScene) -> float:
    mean = None if scene.summary is None else round(scene.summary.mean, 2)
    proposed = PROPOSED_WEIGHT if sought in ("punctuation", "piece") else PROPOSED
    if sought == "measure" and mean is not None:
        proposed = mean
    kept = of("bound")
    label = say("Bound") if sought == "measure" else say("At least")
    kept = replace(kept, value=proposed if kept.value is None else kept.value)
    asked = controls.box(kept, label, step=0.05, width=170)
    return proposed if asked is None else float(asked)


def _asked(sought: Sought, scene: CorpusScene, bound: float) -> list[_Asked]:
    look, key = session.view(MAIN).of(CorpusLook), scene.key
    where = key.whose
    if sought == "measure":
        least, most = (None, bound) if look.below else (bound, None)
        return [(Asked(*where, key.measure, at_least=least, at_most=most), (scene.words.heading, "%.3f"))]
    if sought in ("attends", "owes"):
        return [(Disagrees(*where, attends_more=sought == "attends", at_least=bound), (say("Difference"), "%.2f"))]
    if sought == "piece" and not look.looked_at:
        return []
    piece = look.looked_at if sought == "piece" else None
    return [(LooksAt(*where, at_least=bound, piece=piece), (say("Weight"), "%.3f"))]


def _of_lines(run: Run) -> Iterator[_Asked]:
    rank = controls.box(
        of("least_rank"),
        say("Rank of a token, at least"),
        step=1,
        width=190,
        help=say("Lines in which some right token had this rank or a worse one; 1 is the model's first choice."),
    )
    loss = controls.box(of("least_loss"), say("Loss per token, at least"), step=0.1, width=190)
    texts = {name: said for name, said in TEXTS.items() if name != "output" or run.about.options.decode}
    side = controls.menu(of("text_in"), say("Text"), texts, width=150)
    words = controls.typed(of("holding"), say("Text that lines contain"), most=LONGEST_NAME, width=220)
    if rank is not None:
        yield OfSentence("worst_rank", at_least=float(rank)), (say("Rank"), "%d")
    if loss is not None:
        yield OfSentence("loss", at_least=float(loss)), (say("Loss"), "%.3f")
    if words:
        yield Contains(side, words), (say("Text"), "%d")
