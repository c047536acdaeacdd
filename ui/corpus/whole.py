"""The scores of the whole corpus: each with its 95 % interval."""

from __future__ import annotations

from typing import Final

from transformer.corpus.scores import CorpusScores, Figure
from ui.corpus.asking import scores_of
from ui.corpus.opened import OpenCorpus
from ui.shared import drawing, page_style
from ui.shared.door import st
from words import Sentence, joined, say, say_n

MOST_REASONS: Final = 3


def draw(corpus: OpenCorpus) -> None:
    """Draw them, and why lines were left out."""
    try:
        with st.spinner(say("Adding up the scores…")):
            found = scores_of(corpus.run)
    except ModuleNotFoundError:
        st.caption(drawing.with_code(say("The scores need sacrebleu: `pip install sacrebleu`.")))
        return
    figures = _figures(found, decoded=corpus.run.about.options.decode)
    shown = [(label, one, form, help) for label, one, form, help in figures if one is not None]
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for label, one, form, help in shown:
            between = say("{low} to {high}", low=format(one.low, form), high=format(one.high, form))
            st.metric(
                label,
                format(one.value, form),
                between,
                help=help,
                width="content",
                delta_color="off",
                delta_arrow="off",
            )
    if found.left_out:
        st.caption(drawing.plain(_left_out(found)))


def _figures(found: CorpusScores, *, decoded: bool) -> list[tuple[Sentence, Figure | None, str, Sentence]]:
    """Label, number, how it is written, and what it is."""
    best = min(found.heads, key=lambda one: one.aer.value, default=None)
    exact = say("Share of lines whose output is the reference.")
    if not decoded:
        exact = say("Share of lines in which every right piece was the model's first choice.")
    return [
        (say("Loss per piece"), found.loss, ".3f", say("Mean over all pieces that were predicted, in nats.")),
        (say("Exact"), found.exact, ".1%", exact),
        (say("BLEU"), found.bleu, ".1f", say("Of all outputs together, 0 to 100.")),
        (say("chrF"), found.chrf, ".1f", say("Of all outputs together, 0 to 100.")),
        (
            say("Lowest AER"),
            None if best is None else best.aer,
            ".1%",
            say(
                "The alignment error rate of the cross-attention head that has the lowest: layer {layer}, head "
                "{head}. It was chosen on these lines, so it is a little too low.",
                layer=best.layer if best else 0,
                head=best.head if best else 0,
            ),
        ),
    ]


def _left_out(found: CorpusScores) -> Sentence:
    n = sum(found.left_out.values())
    said = [say_n("{n:,} line was not measured:", "{n:,} lines were not measured:", n)]
    most = [*found.left_out.items()][:MOST_REASONS]
    said += [say("{reason} ({n:,})", reason=reason, n=count) for reason, count in most]
    return joined(" ", said)
