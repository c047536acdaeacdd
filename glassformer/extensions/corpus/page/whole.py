"""The scores of the whole corpus: each with its 95 % interval."""

from typing import Any

from glassformer.extensions.corpus.library.scores import CorpusScores, Figure, HeadAer
from glassformer.extensions.corpus.page.asking import scores_of
from glassformer.extensions.corpus.page.opened import OpenCorpus
from glassformer.shared import drawing, page_style
from glassformer.shared.door import st
from transformer.i18n import Sentence, say, say_n


def draw(corpus: OpenCorpus) -> tuple[HeadAer, ...]:
    """Draw them, and why lines were left out; returns the alignment error rates of heads."""
    try:
        with st.spinner(say("Adding up the scores…")):
            found = scores_of(corpus.run)
    except ModuleNotFoundError:
        st.caption(drawing.with_code(say("The scores need sacrebleu: `pip install 'glassformer[train]'`.")))
        return ()
    figures = _figures(found, decoded=corpus.run.about.options.decode)
    shown = [(label, one, form, help) for label, one, form, help in figures if one is not None]
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for label, one, form, help in shown:
            figure(label, one, form, help)
    if found.left_out:
        st.caption(drawing.plain(_left_out(found)))
    return found.heads


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
        exact = say("Share of lines in which every right piece was the model's first choice.")
    return [
        (say("Loss per piece"), found.loss, ".3f", say("Mean over all pieces that were predicted, in nats.")),
        (say("Exact"), found.exact, ".1%", exact),
        (say("BLEU"), found.bleu, ".1f", say("Of all outputs together, 0 to 100.")),
        (say("chrF"), found.chrf, ".1f", say("Of all outputs together, 0 to 100.")),
        (say("Lowest AER"), None if best is None else lowest(best)[0], ".1%", _of_best(best)),
    ]


def lowest(one: HeadAer) -> tuple[Figure, Sentence]:
    """The lower of a head's two alignment error rates, and of which rows it is."""
    if one.predicts.value <= one.reads.value:
        return one.predicts, say("a piece's row is the one that predicts it")
    return one.reads, say("a piece's row is the one that reads it")


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


def _left_out(found: CorpusScores) -> Sentence:
    return say_n(
        "{n:,} line was not measured, for example because: {reason}",
        "{n:,} lines were not measured, for example because: {reason}",
        sum(found.left_out.values()),
        reason=next(iter(found.left_out)),
    )
