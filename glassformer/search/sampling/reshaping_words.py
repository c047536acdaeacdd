"""What temperature, top-k and top-p make of a step's distribution: its numbers, and what follows from them.

Knows nothing of Streamlit.
"""

from collections.abc import Iterator

from glassformer.runs.picture import Rows, Said
from transformer.analysis.reshaping import Reshaped, Spread, spread
from transformer.i18n import joined, say
from transformer.i18n.numbers import chance
from transformer.runs.trace import Trace


def about(trace: Trace, found: Reshaped) -> Said:
    """The numbers of each distribution below each other, and what follows from them, beside the chart."""
    stages = (
        (say("The model's own"), spread(found.raw)),
        (say("Tempered"), spread(found.tempered)),
        (say("Drawn from"), spread(found.cut)),
    )
    columns = [
        say("Distribution"),
        say("Entropy (bits)"),
        say("Pieces left"),
        say("Probability of the likeliest piece"),
    ]
    rows = [[name, f"{one.entropy:.2f}", f"{one.left:,}", f"{one.top:.4f}"] for name, one in stages]
    said = joined(" ", _said(trace, found, *(one for _, one in stages)))
    return Said(table=Rows(columns=columns, rows=rows), below=said, beside=True)


def _said(trace: Trace, found: Reshaped, raw: Spread, tempered: Spread, cut: Spread) -> Iterator[str]:
    piece = trace.vocabulary
    if raw.best == tempered.best:
        yield say(
            "“{piece}” is the likeliest piece at every temperature: dividing all scores by the same number "
            "keeps their order.",
            piece=piece[tempered.best],
        )
    else:
        yield say(
            "The model itself prefers “{closed}”, but rules in its config exclude that piece or lower its "
            "score. With these rules, “{piece}” is the likeliest piece at every temperature.",
            closed=piece[raw.best],
            piece=piece[tempered.best],
        )
    yield _of_temperature(found.how.temperature, raw, tempered)
    yield _of_cut(trace, found, cut)


def _of_temperature(temperature: float, raw: Spread, tempered: Spread) -> str:
    if temperature == 1:
        return say("Temperature 1 leaves the scores unchanged.")
    return say(
        "At temperature {temperature:g}, the entropy changes from {raw:.2f} to {tempered:.2f} bits.",
        temperature=temperature,
        raw=raw.entropy,
        tempered=tempered.entropy,
    )


def _of_cut(trace: Trace, found: Reshaped, cut: Spread) -> str:
    away = 1 - float(found.tempered[found.cut > 0].sum())
    if not found.how.top_k and found.how.top_p == 1:
        barred = [trace.vocabulary[i] for i in trace.never_written if found.tempered[i] == 0]
        if len(barred) == 1:
            return say(
                "Top-k and top-p are off: every piece can be drawn except “{piece}”, which no output may contain.",
                piece=barred[0],
            )
        if barred:
            return say(
                "Top-k and top-p are off: every piece can be drawn except the {n:,} pieces that no output may "
                "contain, for example “{piece}”.",
                n=len(barred),
                piece=barred[0],
            )
        return say("Top-k and top-p are off: every piece can be drawn, however improbable.")
    if cut.left == 1:
        return say("Only one piece is left, so every draw gives that piece, like greedy decoding.")
    by_k = int((found.by_k > 0).sum())
    if found.how.top_k and found.how.top_p < 1:
        return say("Top-k leaves {by_k:,} pieces, and top-p leaves {n:,} of these. The pieces cut off had a total "
                   "probability of {away}.",
                   by_k=by_k, n=cut.left, away=chance(away))  # fmt: skip
    return say(
        "After the cut, {n:,} pieces are left. The pieces cut off had a total probability of {away}.",
        n=cut.left,
        away=chance(away),
    )
