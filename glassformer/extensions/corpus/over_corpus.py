"""Comparison of a head on the current sentence with its statistics over a corpus run."""

from dataclasses import replace

import numpy as np

from glassformer.attention.head_table_pictures import Heads, head_name
from glassformer.charts.theme import capitalised
from glassformer.extensions.corpus import corpora
from glassformer.extensions.corpus.library.folder import Run, summaries
from glassformer.extensions.corpus.library.rollups import Key, Summary
from glassformer.runs.error_boundary import attempt
from glassformer.runs.viewed_run import ViewedRun
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, joined, say

LINE = "over_corpus"


def draw(found: Heads) -> None:
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
