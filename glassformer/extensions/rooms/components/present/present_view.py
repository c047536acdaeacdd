"""The button and the key that begin and end the presentation: no sidebar, and large type on page and charts.

All of it happens in the browser (`common/present.js`); Python is told nothing. The address then says `present=1`,
which `glassformer/state/language.py` leaves out. A language that was chosen is written into the address there, too,
in place.
"""

from glassformer.components.element import Element
from glassformer.state import language

_PRESENTER = Element("presenter")


def presenter() -> None:
    """Draw the button; its place is fixed by `glassformer/shared/page_style.py`."""
    _PRESENTER.draw({"spoken": language.in_address().get(language.PARAMETER, "")}, key="presenter")
