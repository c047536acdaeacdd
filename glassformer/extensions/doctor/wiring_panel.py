"""Winner of the search for a wiring on the page *Doctor*: its code, both losses, a pair under both, where it shows."""

from functools import partial

import numpy as np

from glassformer.charts.marks import Axis, Numbers, bars, formatted
from glassformer.extensions.doctor.library.findings import Finding
from glassformer.extensions.doctor.library.report import Report
from glassformer.extensions.wirings.catalogue import titles
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, say

CHART = "wiring_losses"


def draw(finding: Finding, report: Report | None) -> None:
    """Draw the lines that are probably wrong beside those that are right, and what they do to the pairs."""
    for wrong, right in finding.measured.code:
        drawing.beside(
            partial(_lines, say("In the code, probably:"), wrong), partial(_lines, say("It should be:"), right),
            gap="medium",
        )  # fmt: skip
    if report is not None and finding.test == "wiring":
        if report.search is not None and report.search.n_pairs:
            _losses(report)
        _example(report)


def _lines(label: Sentence, code: Sentence) -> None:
    st.caption(label)
    st.code(code.strip(), language="python")


def _losses(report: Report) -> None:
    """Draw the loss as the model stands and with the mistake, as two bars."""
    found = report.search
    if found is None or found.standing is None or found.best is None:
        return
    names = [say("As the model stands"), titles(found.best.names)]
    losses = [found.standing.plain.mean, found.best.plain.mean]
    drawn = bars(
        say("Loss on the pairs"),
        Axis(say("Wiring"), names),
        Numbers(say("loss per token, in nats"), np.array(losses), ".3g"),
        ends=lambda i: formatted(losses[i], ".3g"),
    )
    drawing.chart(drawn["spec"], key=CHART, alt=drawn["alt"], how_to_read="")


def _example(report: Report) -> None:
    """Draw one pair, as the model stands and with the mistake."""
    if report.example is None:
        return
    one = report.example
    rows = (
        (say("Source"), one.source),
        (say("Right"), one.right),
        (say("As the model stands"), one.standing),
        (say("With the mistake"), one.mistaken),
    )
    with st.container(border=True, gap=None):
        for label, text in rows:
            st.markdown(say("**{label}:** “{text}”", label=label, text=drawing.plain(text)))
