"""Scripts of the extensions' pages; one that was deleted is a path where nothing is."""

from pathlib import Path

from tests.pages.conftest import PAGES, ROOT


def script(name: str) -> Path:
    """The script of a page."""
    return PAGES.get(name, ROOT / "deleted" / f"{name}.py")


COMPARE = script("compare")
DOCTOR = script("doctor")
LESSONS = script("lessons")
MATTERS = script("matters")
OPEN = script("open")
PROJECTOR = script("projector")
SENTENCES = script("sentences")
TRAINING = script("training")
WRONG = script("wrong")
