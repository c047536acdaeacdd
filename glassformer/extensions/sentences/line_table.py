"""Results of a file of sentences: totals, scatter chart, histogram; filter, order and table; one line with links.

The selected line is above them: all of its texts, and links to every page that shows its run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from glassformer.charts.histograms import number_spread_spec
from glassformer.extensions.sentences.charts import HEIGHT, HOW_TO_READ_POINTS, line_points_spec
from glassformer.extensions.sentences.line_runs import LineResult, Summary, columns, summary
from glassformer.extensions.sentences.sentence_runs import SentenceFile
from glassformer.extensions.sentences.sentences_look import LineOrder, Listed, SentencesLook
from glassformer.runs.run_address import REVISION_LENGTH
from glassformer.shared import controls, drawing, menu, page_style
from glassformer.shared.csv_export import Origin, decoding_of
from glassformer.shared.i18n import frame, here, st
from glassformer.state import session
from glassformer.state.fields import LONGEST_NAME
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Click, place_of
from transformer.i18n import Sentence, joined, say, say_n

POINTS, SPREAD = "sentences_points", "sentences_spread"
HOW_TO_READ_SPREAD = say("Each bar counts the lines whose values fall into one interval.")
_BINS = 20
LEAST_DRAWN = 3  # lines; fewer are read in the table


class _Measure(NamedTuple):
    """A number of a line, by its attribute; its name on an axis, and in a title."""

    of: str
    name: Sentence
    short: Sentence


_LOG_PROB = _Measure("mean_log_prob", say("Log-probability per token (nats)"), say("Log-probability per token"))
_CHRF = _Measure("chrf", say("chrF"), say("chrF"))
_RATIO = _Measure("length_ratio", say("Length ratio"), say("Length ratio"))
_ENTROPY = _Measure("entropy", say("Entropy (bits)"), say("Entropy"))


def overview(results: Sequence[LineResult]) -> None:
    """Draw what all lines give together."""
    with st.container(horizontal=True, key=page_style.SUMMARY):
        for label, value, help in _summed(summary(results)):
            st.metric(label, value, help=help, width="content")
    against = next((one for one in (_CHRF, _RATIO, _ENTROPY) if len(_numbers_of(one, results)) >= LEAST_DRAWN), None)
    if against is None or len(_numbers_of(_LOG_PROB, results)) < LEAST_DRAWN:
        return
    drawn = against if against is _CHRF else _LOG_PROB
    drawing.beside(lambda: _points(results, against), lambda: _spread(results, drawn), widths=(3, 2))


def _summed(found: Summary) -> list[tuple[str, str, str | None]]:
    surer = say("Mean log-probability per token, in nats. The closer to 0, the surer the model.")
    unknown = say(
        "Share of source tokens that are unknown. Lines with at least one unknown token: {n:,}.",
        n=found.n_unknown_lines,
    )
    every: list[tuple[str, float | None, str, str | None]] = [
        (say("chrF of all"), found.chrf, ".1f", say("Of all outputs together, 0 to 100.")),
        (say("Log-probability per token"), found.log_prob, ".3f", surer),
        (say("Entropy"), found.entropy, ".2f", say("Mean entropy over all lines, in bits.")),
        (
            say("Length ratio"),
            found.length_ratio,
            ".2f",
            say("Tokens written per token read, not counting start and end marks."),
        ),
        (say("Ended"), found.ended, ".1%", say("Share of outputs that ended with an end mark.")),
        (say("Unknown tokens"), found.unknown, ".2%", unknown),
        (say("Not run"), found.n_failed or None, ",", None),
    ]
    return [(label, format(value, form), help) for label, value, form, help in every if value is not None]


def _numbers_of(measure: _Measure, results: Sequence[LineResult]) -> list[float]:
    """Those of the lines that have one."""
    return [value for one in results if (value := getattr(one, measure.of)) is not None]


def _points(results: Sequence[LineResult], against: _Measure) -> None:
    both = [one for one in results if None not in (getattr(one, _LOG_PROB.of), getattr(one, against.of))]
    line = session.view().of(SentencesLook).line
    title = say("{measure} against log-probability per token", measure=against.short)
    drawing.chart(
        line_points_spec(
            np.array(_numbers_of(_LOG_PROB, both)),
            np.array(_numbers_of(against, both)),
            [one.line.source for one in both],
            numbers=[one.line.number for one in both],
            cut=[one.ended is False for one in both],
            chosen=None if line is None else line + 1,
            x_name=_LOG_PROB.name,
            y_name=against.name,
            title=title,
        ),
        key=POINTS,
        alt=say("{title}, one point per line. The table lists the same numbers.", title=title),
        how_to_read=HOW_TO_READ_POINTS,
        on_click=_open_point,
        of_sentence=False,
    )


def open_line(number: int) -> None:
    """Callback: open a line by its number in the file."""
    session.replace(MAIN, line=number - 1)


def _open_point(click: Click) -> None:
    if (number := place_of(click)) is not None:
        open_line(number)


def _spread(results: Sequence[LineResult], measure: _Measure) -> None:
    values = np.array(_numbers_of(measure, results))
    title = say("{measure} over the lines", measure=measure.short)
    counts, edges = np.histogram(values, bins=_BINS)
    spec = number_spread_spec(edges, counts, title=title, value_name=measure.name, counted=say("Lines"))
    spec["layout"] |= {"height": HEIGHT, "bargap": 0.04}
    drawing.chart(
        spec,
        key=SPREAD,
        alt=say(
            "{title}: {n:,} lines, from {low:.2f} to {high:.2f}, half of them below {middle:.2f}.",
            title=title,
            n=len(values),
            low=values.min(),
            high=values.max(),
            middle=float(np.median(values)),
        ),
        how_to_read=HOW_TO_READ_SPREAD,
        of_sentence=False,
    )


# Which lines are listed: a label, and a test of a line.
KINDS: Final[Mapping[Listed, tuple[str, Callable[[LineResult], bool]]]] = {
    "all": (say("All lines"), lambda one: True),
    "unknown": (say("With unknown tokens"), lambda one: one.n_unknown > 0),
    "cut": (say("Cut off at the length limit"), lambda one: one.ended is False),
    "problem": (say("Not run"), lambda one: one.problem is not None),
}
# The orders: a label, the attribute of a line, and its sign, for the lowest first.
ORDERS: Final[Mapping[LineOrder, tuple[str, str, int]]] = {
    "file": (say("In file order"), "line.number", 1),
    "chrf": (say("Lowest chrF first"), "chrf", 1),
    "log_prob": (say("Least probable first"), "mean_log_prob", 1),
    "entropy": (say("Highest entropy first"), "entropy", -1),
    "ratio": (say("Highest length ratio first"), "length_ratio", -1),
    "repeated": (say("Most repeated first"), "repeated", -1),
    "unknown": (say("Most unknown tokens first"), "n_unknown", -1),
}


def listed(results: Sequence[LineResult], which: Listed, order: LineOrder, holding: str) -> list[LineResult]:
    """Some lines in some order, each `holding` a text in any case; those without a number for the order come last."""
    (_, is_one), (_, name, sign) = KINDS[which], ORDERS[order]
    found = [one for one in results if is_one(one) and _holds(one, holding.casefold())]

    def worst_first(one: LineResult) -> tuple[float, int]:
        number = attrgetter(name)(one)
        return math.inf if number is None else sign * number, one.line.number

    return sorted(found, key=worst_first)


def choices_of(results: Sequence[LineResult], *, counted: bool) -> dict[Listed, str]:
    """The choices that list some line, said, with how many where they are `counted`."""
    counts = {name: sum(map(is_one, results)) for name, (_, is_one) in KINDS.items()}
    return {
        name: say("{what} · {n:,}", what=said, n=counts[name]) if counted else said
        for name, (said, _) in KINDS.items()
        if name == "all" or counts[name]
    }


def all_orders(results: Sequence[LineResult]) -> dict[LineOrder, str]:
    """The orders that some line has a number for."""
    return {
        order: said
        for order, (said, name, _) in ORDERS.items()
        if order == "file" or any(attrgetter(name)(one) is not None for one in results)
    }


def _holds(one: LineResult, wanted: str) -> bool:
    texts = (one.line.source, one.line.reference or "", one.output)
    return not wanted or any(wanted in text.casefold() for text in texts)


TABLE, OPEN, CSV, LISTED = "sentences_table", "sentences_open", "sentences_csv", "sentences_listed"
_TEXT_WIDTH, _NUMBER_WIDTH, _OPEN_WIDTH = 160, 73, 60

_Numbers = dict[str, tuple[Sentence, Sentence, str]]
_READ: Final[dict[str, Sentence]] = {"source": say("Source"), "output": say("Output")}
_NUMBERS: Final[_Numbers] = {
    "chrf": (say("chrF"), say("chrF2 of the output against the reference, 0 to 100."), "%.1f"),
    "score": (say("Score", about="an output"), say("Beam search ranks its results by this number."), "%.3f"),
    "log_prob_per_piece": (
        say("Log-prob."),
        say("Mean log-probability per token, in nats. The closer to 0, the surer the model."),
        "%.3f",
    ),
    "entropy_bits": (say("Entropy"), say("Mean entropy over all steps, in bits."), "%.2f"),
    "length_ratio": (say("Ratio"), say("Tokens written per token read, not counting start and end marks."), "%.2f"),
    "repeated": (
        say("Repeated"),
        say("Share of all pairs of neighbouring tokens in the output that repeat an earlier pair."),
        "percent",
    ),
    "unknown": (
        say("Unknown"),
        say("Number of unknown tokens in the source. They replace text that is not in the vocabulary."),
        "%d",
    ),
}
_BEHIND: Final[_Numbers] = {
    "log_prob": (say("Sum"), say("Sum of the log-probabilities of all tokens, in nats."), "%.2f"),
    "pieces": (say("Tokens"), say("Number of tokens counted in the log-probability, including the end mark."), "%d"),
}


def table(file: SentenceFile, results: Sequence[LineResult], *, over: bool) -> None:
    """Draw the lines that are listed; `over` says that no others will come."""
    found = _asked_for(results, over=over)
    if not found:
        st.info(say("No line matches the filters above. Change them."), icon=":material/filter_list:")
        return
    _rows(found)
    count = say_n("{n:,} line.", "{n:,} lines.", len(found))
    how = say("Click a number to open that line. Click a column heading to sort by it.")
    st.caption(joined(" ", [count, how]))
    title = say("lines from a file of sentences")
    origin = Origin(checkpoint=file.checkpoint_name, decoding=decoding_of(file.how), chart=here(title))
    drawing.csv_button(frame(columns(found, ordered=False)), key=CSV, title=title, of=origin)


def _asked_for(results: Sequence[LineResult], *, over: bool) -> list[LineResult]:
    """Draw the choice of lines; return the selected ones, in order."""
    with controls.bar(MAIN):
        kept = controls.field(MAIN, "listed", key=LISTED)
        shown = choices_of(results, counted=over)
        which: Listed = "all"
        if len(shown) > 1:
            which = controls.choose(kept, say("Lines", about="which are listed"), shown, otherwise="all", bare=True)
        kept, orders = controls.field(MAIN, "line_order"), all_orders(results)
        order = controls.menu(kept, say("Order"), orders, otherwise="file", bare=True, width=230)
        kept = controls.field(MAIN, "holding")
        holding = controls.typed(kept, say("Lines that contain this text"), most=LONGEST_NAME, width=200)
    return listed(results, which, order, holding)


def _rows(found: Sequence[LineResult]) -> None:
    numbers, chosen = [one.line.number for one in found], session.view().of(SentencesLook).line
    cells = columns(found, ordered=False)
    looks = _columns(cells)
    opening_rows(
        TABLE,
        {name: cells[name] for name in looks},
        looks,
        opens=marked(numbers, None if chosen is None else chosen + 1),
        button=drawing.opening(OPEN, say("Line"), numbers, open_line, type="tertiary", width=_OPEN_WIDTH),
        alt=say("One row per line, with its source, output and numbers."),
    )


def marked(numbers: Sequence[int], chosen: int | None) -> list[str]:
    """The words on buttons that open what has these numbers; that of the chosen one has a mark."""
    return [say("● {n}", n=n) if n == chosen else str(n) for n in numbers]


def opening_rows(
    key: str,
    shown: Mapping[str, Sequence[Any]],
    looks: Mapping[str, Any],
    *,
    opens: Sequence[str],
    button: Any,
    alt: str,
    most: int = 10,
    height: int = 420,
) -> None:
    """Draw a table: `opens` are the words on each row's `button`; more than `most` rows scroll in `height` pixels."""
    st.container(key=key).dataframe(
        frame(shown).assign(open=here(opens))[["open", *shown]],
        hide_index=True,
        height="content" if len(opens) <= most else height,
        column_config={"open": button, **looks},
        placeholder="–",
        alt=alt,
    )


def _columns(cells: Mapping[str, object]) -> dict[str, Any]:
    """The columns that exist; numbers come before the reference, to be in sight."""
    kinds = st.column_config
    found: dict[str, Any] = {name: kinds.TextColumn(here(said), width=_TEXT_WIDTH) for name, said in _READ.items()}
    found |= _numbers(_NUMBERS)
    said = here(say("Whether the output ended with an end mark."))
    found["ended"] = kinds.CheckboxColumn(here(say("Ended")), help=said, width=_NUMBER_WIDTH)
    found["reference"] = kinds.TextColumn(here(say("Reference")), width=_TEXT_WIDTH)
    found |= _numbers(_BEHIND)
    found["problem"] = kinds.TextColumn(here(say("Why not run")), width=2 * _TEXT_WIDTH)
    return {name: column for name, column in found.items() if name in cells}


def _numbers(named: _Numbers) -> dict[str, Any]:
    return {
        name: st.column_config.NumberColumn(here(label), help=here(help), format=form, width=_NUMBER_WIDTH)
        for name, (label, help, form) in named.items()
    }


# ------------------------------------------------------------------------------------------------ one line


OPENED = "sentences_opened"
_PAGES: Final = {
    "step": (say("Translate"), ":material/play_arrow:"),
    "attention": (say("Attention"), ":material/grid_on:"),
    "positions": (say("Positions"), ":material/waves:"),
    "masks": (say("Masks"), ":material/border_clear:"),
    "inside": (say("Inside"), ":material/account_tree:"),
    "forcing": (say("Teacher forcing"), ":material/school:"),
}
_WITH_REFERENCE: Final = "forcing"  # what there is to see needs one


def opened(file: SentenceFile, results: Sequence[LineResult]) -> None:
    """Draw the selected line, if it exists."""
    line = session.view().of(SentencesLook).line
    one = None if line is None else next((one for one in results if one.line.number == line + 1), None)
    if one is None:
        return
    with st.container(border=True, key=OPENED):
        st.markdown(_texts(one))
        if one.problem is not None:
            st.error(drawing.with_code(one.problem))
            return
        link = leads_to(file, one)
        with st.container(horizontal=True, gap="medium"):
            for path, (name, icon) in _PAGES.items():
                if path != _WITH_REFERENCE or link.reference:
                    menu.link(path, name, link, icon=icon)


def leads_to(file: SentenceFile, one: LineResult) -> Link:
    """The link to other pages: the run of this line."""
    view = replace(session.view(), step=0, query=None, key=None)
    line, revision = one.line, file.how.checkpoint[:REVISION_LENGTH]
    return replace(file.link, source=line.source, reference=line.reference or None, revision=revision, view=view)


def _texts(one: LineResult) -> str:
    said = [say("**Line {n}**", n=one.line.number), say("**Source:** {text}", text=drawing.plain(one.line.source))]
    if one.output:
        said.append(say("**Output:** {text}", text=drawing.plain(one.output)))
    if one.line.reference is not None:
        said.append(say("**Reference:** {text}", text=drawing.plain(one.line.reference)))
    return joined("  \n", said)
