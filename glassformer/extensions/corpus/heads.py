"""Parts All heads and One head: scores of a run, table of measures, extreme lines; a sentence's head among them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from glassformer.attention.head_table_pictures import Heads, head_name
from glassformer.charts.theme import capitalised
from glassformer.extensions.corpus import corpora, open_corpus_run
from glassformer.extensions.corpus.corpora import scores_of
from glassformer.extensions.corpus.corpus_pictures import CorpusScene, all_heads, spread
from glassformer.extensions.corpus.library.folder import Run, summaries
from glassformer.extensions.corpus.library.queries import Head, Hit
from glassformer.extensions.corpus.library.scores import CorpusScores, Figure, HeadAer
from glassformer.extensions.corpus.library.tables import Key, Summary
from glassformer.extensions.corpus.open_corpus_run import OpenCorpus, can_ask, card, choose_line
from glassformer.runs.error_boundary import attempt
from glassformer.runs.head_measure_labels import MeasureLabels
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.show import show
from glassformer.runs.viewed_run import ViewedRun
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.i18n import here, st
from transformer.i18n import Sentence, joined, say, say_n

_Scores = TypeVar("_Scores")
# Of a whole corpus: each score's name and format.
SCORES: Final[Mapping[str, tuple[Sentence, str]]] = {
    "loss": (say("Loss per token"), ".3f"),
    "exact": (say("Exact"), ".1%"),
    "bleu": (say("BLEU"), ".1f"),
    "chrf": (say("chrF"), ".1f"),
}


def _scores(corpus: OpenCorpus) -> tuple[HeadAer, ...]:
    """Draw them, and why lines were left out; returns the alignment error rates of heads."""
    with st.spinner(open_corpus_run.READING):
        found = installed(partial(scores_of, corpus.run))
    if found is None:
        return ()
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for label, one, form, help in _figures(found, decoded=corpus.run.about.options.decode):
            if one is not None:
                figure(label, one, form, help)
    if found.left_out:
        said = say_n(
            "{n:,} line was not measured, for example because: {reason}",
            "{n:,} lines were not measured, for example because: {reason}",
            sum(found.left_out.values()),
            reason=next(iter(found.left_out)),
        )
        st.caption(drawing.plain(said))
    return found.heads


def installed(scores: Callable[[], _Scores]) -> _Scores | None:
    """Scores; None, and what they need, where that is not installed."""
    try:
        return scores()
    except ModuleNotFoundError:
        st.caption(drawing.with_code(say("The scores need sacrebleu: `pip install 'glassformer[train]'`.")))
        return None


def figure(label: Sentence, one: Figure, form: str, help: Sentence) -> None:
    """Draw a number with its interval below."""
    between = say("{low} to {high}", low=format(one.low, form), high=format(one.high, form))
    look: Any = {"width": "content", "delta_color": "off", "delta_arrow": "off"}
    st.metric(label, format(one.value, form), between, help=help, **look)


def _figures(found: CorpusScores, *, decoded: bool) -> list[tuple[Sentence, Figure | None, str, Sentence]]:
    """Label, number, how it is written, and what it is."""
    best = min(found.heads, key=lambda one: lowest(one)[0].value, default=None)
    exact = say("Share of lines whose output is the reference.")
    if not decoded:
        exact = say("Share of lines in which every right token was the model's first choice.")
    of_all = say("Of all outputs together, 0 to 100.")
    loss = say("Mean over all tokens that were predicted, in nats.")
    helps = {"loss": loss, "exact": exact, "bleu": of_all, "chrf": of_all}
    rows = [(label, getattr(found, name), form, helps[name]) for name, (label, form) in SCORES.items()]
    return [*rows, (say("Lowest AER"), None if best is None else lowest(best)[0], ".1%", _of_best(best))]


def lowest(one: HeadAer) -> tuple[Figure, Sentence]:
    """The lower of a head's two alignment error rates, and of which rows it is."""
    if one.predicts.value <= one.reads.value:
        return one.predicts, say("a token's row is the one that predicts it")
    return one.reads, say("a token's row is the one that reads it")


def _of_best(best: HeadAer | None) -> Sentence:
    if best is None:
        return say("Needs gold word alignments.")
    return say(
        "The alignment error rate of the cross-attention head that has the lowest: layer {layer}, head {head}, where "
        "{rows}. It was chosen on these lines, so it is a little too low.",
        layer=best.layer,
        head=best.head,
        rows=lowest(best)[1],
    )


TABLE, OPEN, CSV = "corpus_table", "corpus_open", "corpus_csv"
NO_LABEL: Final = say(
    "A mean over these lines says where weights are, not what a head is for; lines of another file can give other "
    "numbers. An interval says how far the mean would move with other lines like these, if lines were independent; "
    "neighbouring lines of one text seldom are, so it tends to be too narrow."
)
AER: Final = say(
    "The alignment error rate of the head's largest weights against the gold alignments, 0 % to 100 %; the lower of "
    "its two, as a token's row may be the one that predicts it or the one that reads it."
)
PREDICTS: Final = say("alignment error rate of the rows that predict a token")
READS: Final = say("alignment error rate of the rows that read a token")


def draw(corpus: OpenCorpus) -> None:
    """Draw the part."""
    rates = _scores(corpus)
    show(all_heads, corpus.scene)
    _table(corpus, {("cross", one.layer, one.head): one for one in rates})
    st.caption(NO_LABEL)


def _table(corpus: OpenCorpus, rates: Mapping[Head, HeadAer]) -> None:
    scene = corpus.scene
    heads = [key.whose for key in scene.summaries if key.measure == scene.measure]
    heads.sort(key=lambda one: (scene.kinds.index(one[0]), *one[1:]))
    shown, looks = _shown(scene, heads)
    if rates:
        shown["aer"] = [lowest(rates[one])[0].value if one in rates else None for one in heads]
        looks["aer"] = st.column_config.NumberColumn(here(say("AER")), format="percent", width=70, help=here(AER))
    alt = say("Mean and 95 % interval of the chosen measure, and the means of the others, one row per head.")
    open_corpus_run.of_heads(TABLE, OPEN, heads, scene.key.whose, "head", shown=shown, looks=looks, alt=alt)
    said = say(
        "The first columns are of the measure chosen above; “±” is half its 95 % interval. Click a name to open "
        "that head; the file has the interval of every measure."
    )
    st.caption(said)
    title = say("heads over a corpus")
    open_corpus_run.csv_button(corpus.run, _rows(scene, rates), key=CSV, title=title)


def _shown(scene: CorpusScene, heads: list[Head]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The columns and how they look: the chosen measure with its interval, then the means of the others."""
    own = [scene.summaries[Key(*one, scene.measure)] for one in heads]
    columns: dict[str, list[Any]] = {
        scene.measure: [one.mean for one in own],
        "half": [one.interval and one.interval[1] - one.mean for one in own],
        "deviation": [one.deviation for one in own],
        "n": [one.n for one in own],
    }
    number = st.column_config.NumberColumn
    looks: dict[str, Any] = {
        scene.measure: _column(scene.words),
        "half": number("±", format="%.3f", width=64),
        "deviation": number(
            here(say("Deviation")), format="%.3f", width=84, help=here(say("The standard deviation over the lines."))
        ),
        "n": number(here(say("Lines")), format="localized", width=72, help=here(say("Lines that have the measure."))),
    }
    for name in scene.names():
        if name != scene.measure:
            found = [scene.summaries.get(Key(*one, name)) for one in heads]
            columns[name] = [one and one.mean for one in found]
            looks[name] = _column(scene.spoken[scene.kind][name])
    return columns, looks


def _column(words: MeasureLabels) -> Any:
    heading, help = here(words.heading), here(joined(" ", [words.meaning]))
    return st.column_config.NumberColumn(heading, format="%.3f", width=26 + 6 * len(heading), help=help)


def _rows(scene: CorpusScene, rates: Mapping[Head, HeadAer]) -> list[dict[str, Any]]:
    """One row per head and measure, all of them."""
    rows: list[dict[str, Any]] = [
        {
            "attention": KIND_NAMES[key.kind],
            "layer": key.layer,
            "head": key.head,
            "measure": scene.spoken[key.kind][key.measure].full_title,
            "lines": one.n,
            "mean": one.mean,
            "low": one.interval[0] if one.interval else None,
            "high": one.interval[1] if one.interval else None,
            "deviation": one.deviation,
        }
        for key, one in scene.summaries.items()
    ]
    for (kind, layer, head), one in rates.items():
        named = {"attention": KIND_NAMES[kind], "layer": layer, "head": head}
        for said, found in ((PREDICTS, one.predicts), (READS, one.reads)):
            rows.append(named | {"measure": said, "mean": found.value, "low": found.low, "high": found.high})
    return rows


MOST, LEAST, LINES_CSV = "corpus_most", "corpus_least", "corpus_lines_csv"
N_LINES: Final = 20


def draw_one(corpus: OpenCorpus) -> None:
    """Draw the part."""
    found, one = corpus.scene.summary, attempt(lambda: corpus.of_head)
    if found is None:
        st.info(say("No line of this corpus run has this measure of the head."), icon=":material/info:")
        return
    show(spread, replace(corpus.scene, here=None if one is None else one.values[corpus.scene.measure]))
    st.caption(_spread_said(corpus))
    if not can_ask():
        return
    choose_line(corpus)
    card(corpus, at_head=True)
    _lines(corpus)


def _spread_said(corpus: OpenCorpus) -> Sentence:
    found = corpus.scene.summary
    assert found is not None
    low, high = found.interval or (found.mean, found.mean)
    middle = [found.quantile(share) for share in (0.05, 0.5, 0.95)]
    if None in middle or found.interval is None:
        return say_n("Mean {mean:.3f} over {n:,} line.", "Mean {mean:.3f} over {n:,} lines.", found.n, mean=found.mean)
    return say(
        "Mean {mean:.3f}, 95 % interval {low:.3f} to {high:.3f}, over {n:,} lines. Half of the lines are below "
        "{middle:.2f}; nine out of ten are between {least:.2f} and {most:.2f}.",
        mean=found.mean,
        low=low,
        high=high,
        n=found.n,
        least=middle[0],
        middle=middle[1],
        most=middle[2],
    )


def _lines(corpus: OpenCorpus) -> None:
    key = corpus.scene.key
    ask = partial(corpora.extremes, corpus.run, *key.whose, key.measure, n=N_LINES)
    most, least = attempt(lambda: ask(most=True)), attempt(lambda: ask(most=False))
    if most is None or least is None:
        return
    heading = corpus.scene.words.heading

    def one(found: Sequence[Hit], where: str, title: Sentence) -> None:
        st.subheader(title, anchor=False)
        open_corpus_run.table(where, found, [(heading, "%.3f")], title)

    drawing.beside(
        lambda: one(most, MOST, say("Lines with the highest values")),
        lambda: one(least, LEAST, say("Lines with the lowest values")),
    )
    st.caption(say("Click a number to open that line. Click a column heading to sort by it."))
    title = say("lines with the highest and lowest values of a head")
    columns = open_corpus_run.columns([*most, *least], 1)
    open_corpus_run.csv_button(corpus.run, columns, key=LINES_CSV, title=title)


# ------------------------------------------------------------------------------------------------ a sentence's head

LINE = "over_corpus"


def below(found: Heads) -> None:
    """Draw the line; nothing where no corpus run is of this checkpoint."""
    run = found.run
    corpus = corpora.of_checkpoint(run.checkpoint.content_hash) if isinstance(run, ViewedRun) else None
    if corpus is None or not isinstance(run, ViewedRun):
        return
    kind, (layer, head) = run.view.kind, found.shown
    there = attempt(lambda: summaries(corpus))
    summary = (there or {}).get(Key(kind, layer + 1, head + 1, found.name))
    if summary is None:
        return
    view = run.view.but(kind=kind, layer=layer, head=head, corpus_run=corpus.key, corpus_measure=found.name)
    link = replace(run.link, view=view.but(corpus_panel="head", line=None, query=None, key=None))
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(LINE)):
        st.caption(drawing.plain(_told(corpus, summary, found)), width="content")
        menu.link("corpus", say("See this head over the corpus"), link, icon=":material/stacked_bar_chart:")


def _told(corpus: Run, summary: Summary, found: Heads) -> Sentence:
    layer, head = found.shown
    low, high = summary.interval or (summary.mean, summary.mean)
    said = say(
        "{head} over a corpus ({file}, {n:,} lines): {measure} {mean:.3f}, 95 % interval {low:.3f} to {high:.3f}.",
        head=head_name(layer, head),
        file=joined(", ", corpus.about.files),
        n=summary.n,
        measure=found.spoken[found.name].full_title,
        mean=summary.mean,
        low=low,
        high=high,
    )
    parts, value = [capitalised(said)], float(found.means[layer, head])
    if np.isfinite(value):  # else this sentence has no such row
        share = share_below(summary, value)
        parts.append(say("About {share:.0%} of these lines are below this sentence.", share=share))
    return joined(" ", parts)


def share_below(summary: Summary, value: float) -> float:
    """The share of lines below a value, as if those of one bin were spread evenly in it."""
    bins, place = summary.bins, int(summary.bins.places(np.array([value]))[0])
    inside = (value - bins.least) / bins.width - (place - 1) if 1 <= place <= bins.n else 0.5
    return float((summary.counts[:place].sum() + inside * summary.counts[place]) / summary.n)
