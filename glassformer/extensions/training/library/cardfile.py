"""The file given as `train --card`: what a checkpoint's card says besides what training measures.

It is read as strictly as the card of a folder, and more: what loading would leave out with a warning is refused here,
while it can still be mended.
"""

from pathlib import Path

from transformer.checkpoint import card
from transformer.errors import DataError
from transformer.files import files, strictjson

MOST_CARD = card.MAX_BYTES // 4  # of --card; written with indents and with what training adds it is larger


def read_card(path: Path | None) -> dict[str, object]:
    """What the file given as --card says; a `DataError` where loading the checkpoint would leave some of it out."""
    if path is None:
        return {}
    content = files.read_start(path, MOST_CARD + 1)
    if len(content) > MOST_CARD:
        raise DataError("{file}: is longer than {most:,} bytes; shorten it.", file=str(path), most=MOST_CARD)
    _, problems = card.read_card(content)
    if problems:
        raise DataError(
            "{file}: cannot be used as a checkpoint's card. {problem}", file=str(path), problem=problems[0]
        )
    given: dict[str, object] = strictjson.parse(content)
    return given
