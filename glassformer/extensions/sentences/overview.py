"""What all lines give together: numbers in a row, and two charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.extensions.sentences.charts.sentences import (
    HOW_TO_READ_POINTS,
    HOW_TO_READ_SPREAD,
    line_points_spec,
    line_spread_spec,
)
from glassformer.extensions.sentences.many import LineResult, Summary, summary
from glassformer.extensions.sentences.sentences_look import SentencesLook
from glassformer.shared import drawing, page_style
from glassformer.shared.clicks import on_click
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.click import place_of
from glassformer.state.view import MAIN
from transformer.i18n import Sentence, say

POINTS, SPREAD = "sentences_points", "sentences_spread"
LEAST_DRAWN = 3  # lines; fewer are read in the table


@dataclass(frozen=True)
class _Measure:
    """A number of a line, and what it is called: on an axis, over the points, over the bars."""

    name: Sentence
    against: Sentence
    spread: Sentence
    of: Callable[[LineResult], float | None]


_LOG_PROB = _Measure(
    say("Log-probability per piece (nats)"),
    say("Log-probability per piece"),
    say("Lines by log-probability"),
    lambda one: one.mean_log_prob,
)
_CHRF = _Measure(
    say("chrF"), say("chrF against log-probability per piece"), say("Lines by chrF"), lambda one: one.chrf
)
_RATIO = _Measure(
    say("Length ratio"),
    say("Length ratio against log-probability per piece"),
    say("Lines by length ratio"),
    lambda one: one.length_ratio,
)
_ENTROPY = _Measure(
    say("Entropy (bits)"),
    say("Entropy against log-probability per piece"),
    say("Lines by entropy"),
    lambda one: one.entropy,
)


def overview(results: Sequence[LineResult]) -> None:
    """Draw what all lines give together."""
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for label, value, help in _numbers(summary(results)):
            st.metric(label, value, help=help, width="content")
    against = next((one for one in (_CHRF, _RATIO, _ENTROPY) if _has(one, results) >= LEAST_DRAWN), None)
    if against is None or _has(_LOG_PROB, results) < LEAST_DRAWN:
        return
    drawn = against if against is _CHRF else _LOG_PROB
    drawing.beside(lambda: _points(results, against), lambda: _spread(results, drawn), widths=(3, 2))


def _numbers(found: Summary) -> list[tuple[str, str, str | None]]:
    """Label, value and explanation of each number that there is."""
    surer = say("Mean log-probability over all pieces, in nats. The closer to 0, the surer the model.")
    unknown = say(
        "Share of source pieces that are unknown. Lines with at least one unknown piece: {n:,}.",
        n=found.n_unknown_lines,
    )
    every: list[tuple[str, float | None, str, str | None]] = [
        (say("chrF of all"), found.chrf, ".1f", say("chrF computed over all outputs together, 0 to 100.")),
        (say("Log-probability per piece"), found.log_prob, ".3f", surer),
        (say("Entropy"), found.entropy, ".2f", say("Mean entropy over all lines, in bits.")),
        (
            say("Length ratio"),
            found.length_ratio,
            ".2f",
            say("Number of pieces written per piece read, over all lines."),
        ),
        (say("Ended"), found.ended, ".1%", say("Share of outputs that ended with an end mark.")),
        (say("Unknown pieces"), found.unknown, ".2%", unknown),
        (say("Not run"), found.n_failed or None, ",", None),
    ]
    return [(label, format(value, form), help) for label, value, form, help in every if value is not None]


def _has(measure: _Measure, results: Sequence[LineResult]) -> int:
    return sum(measure.of(one) is not None for one in results)


def _points(results: Sequence[LineResult], against: _Measure) -> None:
    both = [
        (x, y, one) for one in results if (x := _LOG_PROB.of(one)) is not None and (y := against.of(one)) is not None
    ]
    line = session.view().of(SentencesLook).line
    drawing.chart(
        line_points_spec(
            np.array([x for x, _, _ in both]),
            np.array([y for _, y, _ in both]),
            [one.line.source for *_, one in both],
            numbers=[one.line.number for *_, one in both],
            cut=[one.ended is False for *_, one in both],
            chosen=None if line is None else line + 1,
            x_name=_LOG_PROB.name,
            y_name=against.name,
            title=against.against,
        ),
        key=POINTS,
        alt=say("{title}, one point per line. The table lists the same numbers.", title=against.against),
        how_to_read=HOW_TO_READ_POINTS,
        on_click=on_click(POINTS, place_of, open_line),
        of_sentence=False,
    )


def open_line(number: int) -> None:
    """Callback: open a line by its number in the file."""
    session.replace(MAIN, line=number - 1)


def _spread(results: Sequence[LineResult], measure: _Measure) -> None:
    values = np.array([value for one in results if (value := measure.of(one)) is not None])
    drawing.chart(
        line_spread_spec(values, name=measure.name, title=measure.spread),
        key=SPREAD,
        alt=say(
            "{title}: {n:,} lines, from {low:.2f} to {high:.2f}, half of them below {middle:.2f}.",
            title=measure.spread,
            n=len(values),
            low=values.min(),
            high=values.max(),
            middle=float(np.median(values)),
        ),
        how_to_read=HOW_TO_READ_SPREAD,
        of_sentence=False,
    )
