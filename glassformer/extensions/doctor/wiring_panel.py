"""Named mistake on the page *Doctor*: its code, the loss with it and without, a pair written both ways."""

import numpy as np

from glassformer.charts.marks import Axis, Numbers, bars, formatted
from glassformer.extensions.doctor.library.findings import Finding
from glassformer.extensions.doctor.library.report import Report
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from transformer.i18n import say

CHART = "wiring_losses"
NOTHING = "–"  # an output without text


def draw(finding: Finding, report: Report | None) -> None:
    """Draw the lines that are probably wrong beside those that are right, and what they do to the pairs."""
    for wrong, right in finding.measured.code:
        drawing.codes((say("In the code, probably:"), wrong), (say("It should be:"), right))
    if report is not None and finding.test == "wiring":
        if report.search is not None and report.search.n_pairs:
            _losses(report)
        _example(report)


def _losses(report: Report) -> None:
    """Draw the loss as the model stands and with the mistake, as two bars."""
    found = report.search
    if found is None or found.standing is None or found.best is None:
        return
    names = [say("As it stands"), say("With it")]
    losses = [found.standing.plain.mean, found.best.plain.mean]
    drawn = bars(
        say("Loss on the pairs, without the mistake and with it"),
        Axis(say("Model"), names),
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
        (say("As it stands"), one.standing),
        (say("With the mistake"), one.mistaken),
    )
    with st.container(border=True, gap=None):
        for label, text in rows:
            st.markdown(
                say("**{label}:** “{text}”", label=label, text=drawing.plain(text) if text.strip() else NOTHING)
            )
