"""What the pages are called that a teacher sends a class to, and their addresses."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from transformer.i18n import say

PAGES: Final[Mapping[str, str]] = {
    "step": say("Step through decoding"),
    "attention": say("Attention"),
    "positions": say("Positions"),
    "masks": say("Masks"),
    "inside": say("Inside the model"),
    "search": say("How pieces are chosen"),
    "forcing": say("Teacher forcing"),
    "compare": say("Compare"),
    "matters": say("What matters"),
    "wrong": say("What goes wrong"),
    "training": say("Training"),
    "checkpoints": say("Checkpoints"),
    "doctor": say("Doctor"),
}


def whole(app: str, path: str, parameters: Mapping[str, str]) -> str:
    """The whole address of a page, as it is copied."""
    return f"{app}/{path}?{urlencode(parameters)}"
