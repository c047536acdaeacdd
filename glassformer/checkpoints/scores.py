"""The scores of a checkpoint's card as tables. A card is for people, so every record is shown as far as it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from glassformer.shared import drawing, page_style
from glassformer.shared.door import frame, st
from transformer.i18n import joined, say

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

Record = Mapping[str, Any]

NONE: Final = "–"
HOW_TO_READ = say(
    "BLEU and chrF (0 to 100, higher is better) compare each output with one reference translation. Scores on "
    "different files cannot be compared. The epoch to keep was chosen by its score on a dev file, so its score on "
    "that file is slightly too high."
)
TOO_SHORT = say(
    "“{mark}” in the BLEU column means that the outputs have fewer than four words, so BLEU cannot be computed.",
    mark=NONE,
)
HOW_TO_READ_ALIGNMENTS = say(
    "The alignment error rate (AER) measures how much the word links derived from cross-attention differ from "
    "links drawn by people; 0 % is perfect. “AER without a model” is the rate when each target word is linked to "
    "the source word that is equally far through its sentence. “Row” is the decoder row that represents a word: "
    "the row that predicts the word or the row that reads it."
)
HOW_TO_READ_GAPS = say(
    "Each piece of each text was hidden alone. “Guessed right” is the share of pieces for which the model's most "
    "probable piece was the hidden one."
)
_COLUMNS = {
    "file": say("File"),
    "decoding": say("Decoding"),
    "pairs": say("Pairs"),
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": say("Exact"),
}
_FIRST = ("file", "exact", "loss", "aer", "layer", "head", "row", "aer_of_mean", "diagonal", "sentences")
_RATES = {
    "exact": say("Guessed right"),
    "aer": say("AER of the best head"),
    "aer_of_mean": say("AER of the mean map"),
    "diagonal": say("AER without a model"),
}
_TITLES = _RATES | {
    "file": say("File"),
    "layer": say("Layer"),
    "head": say("Head"),
    "row": say("Row"),
    "sentences": say("Sentences"),
    "loss": say("Loss (nats per piece)"),
    "texts": say("Texts"),
    "pieces": say("Pieces"),
}
_MOST_COLUMNS = 8
_MOST_CHARACTERS = 1_000


def scores(checkpoint: Checkpoint) -> None:
    """Draw every scoring that the card records, and under it how each was counted."""
    records = checkpoint.card.scores
    if not records:
        return
    st.subheader(say("Scores"))
    translations = [record for record in records if is_translation(record)]
    if translations:
        st.table(_frame(score_rows(translations)), hide_index=True)
        too_short = any(_is_too_short(record) for record in translations)
        st.caption(joined(" ", [HOW_TO_READ, TOO_SHORT]) if too_short else HOW_TO_READ)
    others: dict[str, list[Record]] = {}
    for record in records:
        if not is_translation(record):
            others.setdefault(_value(record.get("measure")), []).append(record)
    for measure, group in others.items():
        if measure != NONE:
            st.markdown(drawing.strong(_title(measure)))
        st.table(_frame(other_rows(group)), hide_index=True)
        if any("aer" in record for record in group):
            st.caption(HOW_TO_READ_ALIGNMENTS)
        if any("exact" in record for record in group):
            st.caption(HOW_TO_READ_GAPS)
    with st.expander(say("How each score was computed")), st.container(key=page_style.COUNTED):
        for record in records:
            st.markdown(drawing.strong(_name(record)))
            st.table(_frame(details(record)), hide_index=True, hide_header=True)


def score_rows(records: Sequence[Record]) -> list[dict[str, str]]:
    """Scorings of translations of a card, one row each; a column that no record fills is left out."""
    rows = [{title: _cell(record, name) for name, title in _COLUMNS.items()} for record in records]
    filled = [
        title for name, title in _COLUMNS.items() if any(_value(record.get(name)) != NONE for record in records)
    ]
    return [{title: row[title] for title in filled} for row in rows]


def other_rows(records: Sequence[Record]) -> list[dict[str, str]]:
    """Measurements of another kind, such as alignment error rates; what has no room is in the details."""
    there = {name for record in records for name, value in record.items() if _is_short(value)} - {"sha256", "measure"}
    first = [name for name in _FIRST if name in there]
    names = [*first, *sorted(there.difference(first))][:_MOST_COLUMNS]
    return [{_TITLES.get(name, _title(name)): _other_cell(record, name) for name in names} for record in records]


def details(record: Record) -> list[dict[str, str]]:
    """All that a record says, one row a field."""
    return [{say("Field"): str(name), say("Value"): _value(value)} for name, value in record.items()]


def _frame(rows: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    return frame([{drawing.plain(name): drawing.plain(value) for name, value in row.items()} for row in rows])


def is_translation(record: Record) -> bool:
    """Whether a record is of outputs that were compared with references."""
    return "measure" not in record and any(_is_number(record.get(name)) for name in ("bleu", "chrf", "exact"))


def _is_too_short(record: Record) -> bool:
    """BLEU is 0 although outputs equal their references: those have no run of four words."""
    return record.get("bleu") == 0 and _is_number(record.get("exact")) and record["exact"] > 0


def _is_number(value: object) -> bool:
    """Whether it is a number of a size that a score may have."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


def _is_short(value: object) -> bool:
    return _is_number(value) or (isinstance(value, str) and len(value) <= 40)


def _cell(record: Record, name: str) -> str:
    value = record.get(name)
    if name == "bleu" and _is_too_short(record):
        return NONE
    if name == "decoding":
        return _decoding(record)
    if name == "exact" and _is_number(value):
        return f"{value:.1%}"
    if name in ("bleu", "chrf") and _is_number(value):
        return f"{value:.2f}"
    return _value(value)


def _other_cell(record: Record, name: str) -> str:
    value = record.get(name)
    if name in _RATES and _is_number(value):
        return f"{value:.1%}"
    return _value(value)


def _decoding(record: Record) -> str:
    """Such as "greedy" or "beam 5"; a card may name another way."""
    how, size = record.get("decoding"), record.get("beam_size")
    if how == "beam" and _is_number(size):
        return say("beam {size}", size=size)
    return {"beam": say("beam"), "greedy": say("greedy")}.get(str(how)) or _value(how)


def _name(record: Record) -> str:
    named = [value for value in (_value(record.get("file")), _decoding(record)) if value != NONE]
    return joined(", ", named) if named else say("Without a file name")


def _title(name: str) -> str:
    """A card's own name for something, which is data, as a heading."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _value(value: object) -> str:
    """Any value of a card in a line."""
    if value is None or value == "":
        return NONE
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, int):
        return say("{n:,}", n=value) if abs(value) < 10**18 else say("a number with more than 18 digits")
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return say("{beginning}… ({n:,} characters)", beginning=text[:_MOST_CHARACTERS], n=len(text))
