"""From what a finding says of where it shows to the address of that view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from transformer.doctor.findings import PageName, Shown
from ui.state.link import Link
from words import Sentence, say

LABELS: Final[dict[PageName, Sentence]] = {
    "step": say("See it in Step through decoding"),
    "attention": say("See it in Attention"),
    "positions": say("See it in Positions"),
    "masks": say("See it in Masks"),
    "inside": say("See it in Inside the model"),
    "checkpoints": say("See it in Checkpoints"),
    "forcing": say("Teacher forcing of the worst pair"),
    "doctor": say("See its numbers in Parameters"),
}
_PANELS: Final[dict[str, str]] = {
    "attention": "panel",
    "positions": "positions_panel",
    "masks": "masks_panel",
    "inside": "inside_panel",
    "doctor": "doctor_panel",
}


def leads_to(shown: Shown, link: Link) -> Link:
    """The link to where something shows.

    Args:
        shown: Where that is.
        link: Of the page at hand. Its way of decoding and its changes are left out: the doctor examined the model
            without them.
    """
    looked_at: dict[str, Any] = {name: getattr(shown, name) for name in ("kind", "layer", "head", "step", "tensor")}
    looked_at = {name: value for name, value in looked_at.items() if value is not None}
    if shown.panel and shown.page in _PANELS:
        looked_at[_PANELS[shown.page]] = shown.panel
    source = link.source if shown.source is None else shown.source
    return Link(
        model=link.model,
        revision=link.revision,
        answers=link.answers,
        source=source,
        reference=shown.reference,
        view=replace(link.view, query=None, key=None, **looked_at),
    )
