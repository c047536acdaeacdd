"""Tables of a corpus run whose first column opens a row: of lines by their numbers, of heads by their names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.queries import Hit, Place
from glassformer.extensions.corpus.page.corpus_pictures import head_name
from glassformer.extensions.corpus.page.opened import look_at
from glassformer.extensions.sentences.sentences_look import SentencesLook
from glassformer.shared import drawing
from glassformer.shared.door import here, st
from glassformer.shared.saving import Origin
from glassformer.state import session
from transformer.i18n import Sentence, say
from transformer.i18n.numbers import hundredths
from transformer.model.anatomy import Kind

Heading = tuple[str, str]
"""The heading of a column of numbers, and how they are written."""

_HEIGHT: Final = 420  # pixels
_MOST_WITHOUT_SCROLLING: Final = 12  # rows
_MOST_LINES: Final = 10  # of two tables beside each other
_TEXT_WIDTH, _PLACE_WIDTH, _OPEN_WIDTH, _HEAD_WIDTH = 260, 130, 62, 270
Head = tuple[Kind, int, int]  # layer and head from 1


def drawn(
    key: str,
    shown: Mapping[str, Sequence[Any]],
    opens: Sequence[str],
    button: Any,
    looks: Mapping[str, Any],
    alt: str,
    *,
    most: int = _MOST_WITHOUT_SCROLLING,
    height: int = _HEIGHT,
) -> None:
    """Draw rows: `opens` are the words on each one's `button`; more than `most` scroll in `height` pixels."""
    st.container(key=key).dataframe(
        pd.DataFrame(shown).assign(open=here(opens))[["open", *shown]],
        hide_index=True,
        height="content" if len(opens) <= most else height,
        column_config={"open": button, **looks},
        placeholder="–",
        alt=alt,
    )


def of_heads(
    key: str,
    press: str,
    heads: Sequence[Head],
    chosen: Head,
    look: Callable[[Head], None],
    *,
    shown: Mapping[str, Sequence[Any]],
    looks: Mapping[str, Any],
    alt: str,
) -> None:
    """Draw a row for each head; the button `press` opens it by `look`."""
    named = [head_name(kind, layer - 1, head - 1) for kind, layer, head in heads]
    opens = [say("● {name}", name=name) if one == chosen else name for one, name in zip(heads, named, strict=True)]
    button = drawing.opening(press, say("Head"), heads, look, type="tertiary", width=_HEAD_WIDTH, alignment="left")
    drawn(key, shown, opens, button, looks, alt)


def table(key: str, hits: Sequence[Hit], values: Sequence[Heading], alt: str) -> None:
    """Draw lines; `values` are the headings of what was looked at, one for each number of a line."""
    numbers, chosen = [one.line for one in hits], session.view().of(SentencesLook).line
    opens: list[str] = [say("● {n}", n=n) if n - 1 == chosen else str(n) for n in numbers]
    press = f"{key}_open"
    button = drawing.opening(press, say("Line"), numbers, look_at, type="tertiary", width=_OPEN_WIDTH)
    shown = columns(hits, len(values))
    looks = _looks(values)
    names = [name for name in looks if any(cell is not None for cell in shown[name])]
    shown, looks = ({name: of[name] for name in names} for of in (shown, looks))
    drawn(key, shown, opens, button, looks, alt, most=_MOST_LINES)


def columns(hits: Sequence[Hit], n_values: int) -> dict[str, list[Any]]:
    """The cells of a table of lines, by column."""
    found: dict[str, list[Any]] = {f"value {i + 1}": [one.values[i] for one in hits] for i in range(n_values)}
    found["place"] = [None if one.place is None else _peak(one.place) for one in hits]
    found |= {name: [getattr(one, name) for one in hits] for name in ("source", "output", "target")}
    return found | {"loss": [one.loss for one in hits], "worst_rank": [one.worst_rank for one in hits]}


def _peak(place: Place) -> str | None:
    """Where the largest weight is; pieces are data and no sentence."""
    return None if place.weight is None else f"{place.query_piece} → {place.key_piece} {hundredths(place.weight)}"


def _looks(values: Sequence[Heading]) -> dict[str, Any]:
    kinds = st.column_config
    looks: dict[str, Any] = {
        f"value {i + 1}": kinds.NumberColumn(here(said), format=form, width=max(74, 30 + 7 * len(here(said))))
        for i, (said, form) in enumerate(values)
    }
    looks["place"] = kinds.TextColumn(
        here(say("Largest weight")), width=_PLACE_WIDTH, help=here(say("From which query to which key."))
    )
    looks["source"] = kinds.TextColumn(here(say("Source")), width=_TEXT_WIDTH)
    looks["output"] = kinds.TextColumn(here(say("Output")), width=_TEXT_WIDTH)
    looks["target"] = kinds.TextColumn(here(say("Reference")), width=_TEXT_WIDTH)
    looks["loss"] = kinds.NumberColumn(
        here(say("Loss")), format="%.3f", width=70, help=here(say("Loss per piece, in nats."))
    )
    looks["worst_rank"] = kinds.NumberColumn(
        here(say("Rank")),
        format="localized",
        width=70,
        help=here(say("The largest rank of a piece that was predicted; 1 is the model's first choice.")),
    )
    return looks


def origin(run: Run, title: Sentence) -> Origin:
    """What a file of lines is of."""
    return Origin(checkpoint=run.about.checkpoint, chart=here(title))
