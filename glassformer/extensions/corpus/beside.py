"""Part "Two runs": scores and heads of two corpus runs over one file compared, and the lines that differ most."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from glassformer.charts.attribution import Block, head_effects_spec
from glassformer.charts.grammar import table
from glassformer.charts.theme import capitalised
from glassformer.extensions.corpus import corpora, open_corpus_run
from glassformer.extensions.corpus.corpus_pictures import PARTS, CorpusScene, head_of
from glassformer.extensions.corpus.heads import SCORES, figure, installed
from glassformer.extensions.corpus.library.folder import Run, summaries
from glassformer.extensions.corpus.library.queries import Head
from glassformer.extensions.corpus.library.scores import CHANCE, Figure, PairedDifference, PairedScore
from glassformer.extensions.corpus.open_corpus_run import OpenCorpus, can_ask, card, link_to, name_of
from glassformer.extensions.sentences.sentences_look import SentencesLook
from glassformer.extensions.what_if.comparison import comparing
from glassformer.runs.error_boundary import attempt
from glassformer.runs.head_measure_labels import UNITS
from glassformer.runs.map_axes import KIND_NAMES, head_of_kind
from glassformer.runs.picture import Picture, Plot
from glassformer.runs.show import show
from glassformer.shared import controls, drawing, menu, page_style
from glassformer.shared.i18n import here, st
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.snapshots import split
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Kind

HOW_TO_READ = say(
    "Each cell is one head: the mean over the lines of the second run's value minus the first run's. The colour "
    "scale is centred on 0. An asterisk marks a difference whose 95 % interval excludes 0. Click a cell to choose "
    "its head."
)


@dataclass(frozen=True, eq=False)
class Beside:
    """The differences of a measure between two runs, second minus first; at least one."""

    scene: CorpusScene  # of the first run
    found: Mapping[Head, PairedDifference]
    names: tuple[str, str]  # of the runs
    slot: Slot = MAIN

    @property
    def kinds(self) -> list[Kind]:
        """The attentions that have the measure in the same unit."""
        spoken, name = self.scene.spoken, self.scene.measure
        there = {kind for kind, _, _ in self.found}
        return [one for one in self.scene.kinds if one in there and spoken[one][name].unit == self.scene.words.unit]

    @property
    def shown(self) -> dict[Head, PairedDifference]:
        """The heads of those."""
        kinds = self.kinds
        ordered = sorted(self.found, key=lambda one: (self.scene.kinds.index(one[0]), *one[1:]))
        return {head: self.found[head] for head in ordered if head[0] in kinds}


def by_chance(found: Mapping[Head, PairedDifference]) -> Sentence:
    """How many comparisons these are, how many intervals exclude 0, and how many would by chance."""
    n, marked = len(found), sum(one.excludes_0 for one in found.values())
    return joined(
        " ",
        [
            say_n(
                "{n:,} head is compared; the interval excludes 0 for {marked:,}.",
                "{n:,} heads are compared; the interval excludes 0 for {marked:,}.",
                n,
                marked=marked,
            ),
            say("If no head differed, about {chance:.0f} would be marked by chance, 1 in 20.", chance=CHANCE * n),
        ],
    )


def _differences(of: Beside) -> Plot:
    words, shown = of.scene.words, of.shown
    blocks = [_block(kind, {head: one for head, one in shown.items() if head[0] == kind}) for kind in of.kinds]
    kind, layer, head = of.scene.kind, *of.scene.head
    chosen = (of.kinds.index(kind), layer, head) if (kind, layer + 1, head + 1) in shown else None
    first, second = of.names
    spec = head_effects_spec(
        blocks,
        title=say("{measure}: {second} − {first}", measure=capitalised(words.full_title), first=first, second=second),
        value_name=UNITS[words.unit],
        signed=True,
        chosen=chosen,
    )
    place = [say("Kind of attention"), say("layer"), say("head")]
    rows = [[KIND_NAMES[head[0]], *head[1:], one.n, one.mean, one.low, one.high] for head, one in shown.items()]
    table(spec["layout"], [*place, say("lines"), UNITS[words.unit], say("from"), say("to")], rows)
    return Plot(
        spec=spec,
        alt=say(
            "{title}, by layer and head: {second} minus {first}. The table below has the same numbers.",
            title=capitalised(words.title),
            first=first,
            second=second,
        ),
        how_to_read=joined(" ", [HOW_TO_READ, words.meaning, by_chance(shown)]),
        of_sentence=False,
        clicked=partial(head_of, kinds=of.kinds, shapes=[block.values.shape for block in blocks], part="beside"),
    )


def _block(kind: Kind, found: Mapping[Head, PairedDifference]) -> Block:
    size = max(layer for _, layer, _ in found), max(head for _, _, head in found)
    means, says, marked = np.full(size, np.nan), np.full(size, "", object), np.zeros(size, bool)
    for (_, layer, head), one in found.items():
        at = layer - 1, head - 1
        means[at], marked[at] = one.mean, one.excludes_0
        if one.low is not None:
            says[at] = say("95 % interval {low:.3g} to {high:.3g}", low=one.low, high=one.high)
    return Block(KIND_NAMES[kind], means, says, marked)


differences: Final = Picture(PARTS["beside"], "corpus_beside", say("One measure in two corpus runs"), _differences)


TABLE, OPEN, CSV, LINES, SAVED = "beside_table", "beside_open", "beside_csv", "beside_lines", "beside_lines_csv"
N_LINES: Final = 20


def draw(corpus: OpenCorpus) -> None:
    """Draw the part. Errors are those of `corpora.differences`."""
    if not can_ask():
        return
    second = _second(corpus.run)
    if second is None:
        return
    drawing.notes(tuple(_notes(corpus.run, second)))
    with st.spinner(open_corpus_run.READING):
        found = corpora.differences(corpus.run, second, corpus.scene.measure)
        if corpus.run.about.options.decode == second.about.options.decode:
            _scores(corpus.run, second)
    of = Beside(corpus.scene, found, (name_of(corpus.run), name_of(second)))
    if not of.shown:
        st.info(say("The two runs have no head with this measure in common."), icon=":material/info:")
        return
    show(differences, of)
    _table(of, corpus.run)
    _lines(corpus, second, of)


def _second(run: Run) -> Run | None:
    """Draw the choice of the other run; None, and why, where there is none."""
    same = {one.key: one for one in corpora.listed()[0] if one.about.sha256 == run.about.sha256 and one.key != run.key}
    if not same:
        said = say(
            "There is no other corpus run over the same file. Measure the file with a second checkpoint, or with a "
            "snapshot of this one's training."
        )
        st.info(said, icon=":material/info:")
        return None
    key = controls.menu(
        controls.field(MAIN, "second_run", forgets=("line",)),
        say("Second run"),
        {key: say("Beside {name}", name=name_of(one)) for key, one in same.items()},
        bare=True,
        width=320,
    )
    return same[key]


def _notes(first: Run, second: Run) -> Iterator[str]:
    """What a reader should know before comparing."""
    names = [run.about.checkpoint for run in (first, second)]
    if len({(split(name) or (name,))[0] for name in names}) > 1:
        yield say(
            "Heads are paired by their number, which means nothing across two trainings: head 3 of one "
            "model need not do what head 3 of the other does."
        )
    if first.about.options.decode != second.about.options.decode:
        yield say(
            "One run measured the model's own output and the other the reference, so their rows are of "
            "different texts and their scores are not compared."
        )
    heads = [{key.whose for key in summaries(run)} for run in (first, second)]
    if heads[0] != heads[1]:
        yield say(
            "The first run has {n:,} heads and the second {m:,}; only those that both have are compared.",
            n=len(heads[0]),
            m=len(heads[1]),
        )


# ------------------------------------------------------------------------------------------------ numbers


def _scores(first: Run, second: Run) -> None:
    scored = installed(lambda: corpora.score_differences(first, second))
    if scored is None:
        return
    found, (log_prob, alike) = scored
    decoded = first.about.options.decode  # as was the second: what each wrote is long and probable by itself
    per_piece = {"loss"} if decoded else {"loss", "exact"}
    rows = {name: one for name, one in found.items() if name not in per_piece or (alike and not decoded)}
    if not decoded and log_prob is not None and log_prob.low is not None and log_prob.high is not None:
        gap = Figure(log_prob.mean, log_prob.low, log_prob.high)
        rows["log_prob"] = PairedScore(log_prob.first, log_prob.second, gap)
    scores = {**SCORES, "log_prob": (say("Log-probability per line"), ".2f")}
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for name, one in rows.items():
            label, form = scores[name]
            help = say(
                "{one} in the first run, {other} in the second; below, the 95 % interval of the difference.",
                one=format(one.first, form),
                other=format(one.second, form),
            )
            figure(label, one.difference, f"+{form}", help)
    if log_prob is not None and not alike and not decoded:
        st.caption(say("The two models cut outputs into different tokens, so numbers per token are not compared."))


def _table(of: Beside, run: Run) -> None:
    """Draw the heads with their differences, each opened by its name."""
    shown = of.shown
    scene = of.scene
    columns = {
        "first": (of.names[0], "%.3f", 110),
        "second": (of.names[1], "%.3f", 110),
        "mean": (say("Difference"), "%+.3f", 90),
        "low": (say("from"), "%+.3f", 80),
        "high": (say("to"), "%+.3f", 80),
        "n": (say("Lines"), "localized", 72),
    }
    number = st.column_config.NumberColumn
    looks = {name: number(here(said), format=form, width=width) for name, (said, form, width) in columns.items()}
    rows = {name: [getattr(one, name) for one in shown.values()] for name in columns}
    alt = say("Means of both runs, their difference and its 95 % interval, one row per head.")
    open_corpus_run.of_heads(TABLE, OPEN, list(shown), scene.key.whose, "beside", shown=rows, looks=looks, alt=alt)
    title = say("heads of two corpus runs")
    about = dict(zip(("attention", "layer", "head"), map(list, zip(*shown, strict=True)), strict=True))
    open_corpus_run.csv_button(run, about | rows, key=CSV, title=title)


# ------------------------------------------------------------------------------------------------ lines


def _lines(corpus: OpenCorpus, second: Run, of: Beside) -> None:
    """Draw the lines on which the chosen head differs most; the one that is opened in both runs."""
    scene = corpus.scene
    head = scene.key.whose
    title = say("Lines on which a head differs most")
    st.subheader(title, anchor=False)
    if head not in of.found:
        st.info(say("Only one of the two runs has this head."), icon=":material/info:")
        return
    found = attempt(lambda: corpora.most_different(corpus.run, second, scene.measure, head, N_LINES))
    if not found:
        return
    _both(corpus, replace(corpus, run=second))
    headings = [(say("Difference"), "%+.3f"), *((name, "%.3f") for name in of.names)]
    said = say("{head}: {measure}.", head=head_of_kind(scene.kind, *scene.head), measure=scene.words.full_title)
    open_corpus_run.table(LINES, found, headings, title)
    st.caption(joined(" ", [said, say("Click a number to open that line in both runs.")]))
    open_corpus_run.csv_button(corpus.run, open_corpus_run.columns(found, 3), key=SAVED, title=title)


def _both(first: OpenCorpus, second: OpenCorpus) -> None:
    """Draw the selected line in both runs, and the link to Compare."""
    if first.scene.view.of(SentencesLook).line is None:
        return
    drawing.beside(
        lambda: card(first, at_head=True, name=name_of(first.run)),
        lambda: card(second, at_head=True, name=name_of(second.run)),
        gap="medium",
    )
    links = [attempt(lambda one=one: _link(one)) for one in (first, second)]  # type: ignore[misc]
    if links[0] is not None and links[1] is not None and links[0].model != links[1].model:
        menu.link(
            "compare",
            say("Compare both runs of this line"),
            comparing(links[0], with_=links[1]),
            icon=":material/compare:",
        )


def _link(corpus: OpenCorpus) -> Link | None:
    """The link to a line at the selected head; None where its checkpoint is missing."""
    found, whose, one = corpus.line, corpus.whose(), corpus.of_head
    if found is None or whose is None or found.sentence["problem"]:
        return None
    return link_to(*whose, found.hit, one.place if one else None, decoded=corpus.run.about.options.decode)
