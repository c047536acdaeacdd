"""Parts that extensions add to pages: the page draws its own, and asks here for the others."""

from functools import cache
from typing import Any

from glassformer.runs.seen import Seen
from transformer.extensions import provided


class AddedPart:
    """One part; an extension's `parts` names it. Its pictures are declared where those of the page are."""

    page: str  # the path of the page
    name: str  # of the part, as the field of the view says it
    still: bool = False  # nothing in it moves with the step

    def is_there(self, run: Seen) -> bool:
        """Whether the page offers it for a run; it stays while it is looked at."""
        return True

    def draw(self, run: Any) -> None:
        """Draw its controls and it, of an `OpenRun`."""


@cache
def added_parts(page: str) -> dict[str, AddedPart]:
    """Those of a page, by their names."""
    return {one.name: one for one in provided("parts") if one.page == page}
