"""A run as one file: HTML that opens by a double click, without a network, with its stepper and its pictures.

The pictures are those of the page that shows the run, or of all pages that step (`extensions.saving.saved_pages`), as
the pages draw them, with their frames; in every language of the app. Scripts and data are packed with gzip, which
browsers unpack: Plotly's script, of which the app's own version is taken, would else be two thirds of the file.

All text goes in as JSON, and comes out as text.
"""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from plotly.offline import get_plotlyjs

from glassformer.components.assets import read_asset, script
from glassformer.components.stepper.stepper import StepperRun
from glassformer.extensions.saving.saved_pages import SavedPage, others, saved_page, seen_on
from glassformer.runs.frames import Again
from glassformer.runs.picture import Page, Picture
from glassformer.runs.seen import Seen, at_step
from glassformer.shared.door import here
from glassformer.shared.saving import Origin, decoding_of
from glassformer.state.language import tag_of
from glassformer.state.session import STEPPER
from transformer.i18n import ENGLISH, joined, languages, name_of, say
from transformer.i18n.browser import browser_words

MOST_BYTES: Final = 20_000_000  # of pictures and frames before they are packed; what comes then is left out
SLOTS: Final = ("saved-", "beside-")  # of their own, as that of a second run


@dataclass(frozen=True)
class Shown:
    """A run, and what a file shows of it."""

    run: Seen
    stepper: StepperRun
    page: Page
    pictures: Sequence[Picture[Any]] | None = None  # these alone; None for those of the page
    more: bool = False  # and those of all other pages that step
    address: str = ""  # opens the page live; "" for none


@dataclass
class Kept:
    """What a file is made of; a session keeps it, so it holds no run."""

    again: Again
    page: Page  # whose pictures it has
    stepper: StepperRun
    address: str  # opens the same live; "" for none
    step: int | None = None  # where the reader has come to rest since the page was drawn


def saved_run(kept: Kept, *, more: bool = False) -> bytes:
    """The file, made without a session; with `more`, of all pages that step. Errors as of `Again.run` and `Work`."""
    run = kept.again.run()
    run = run if kept.step is None else at_step(run, kept.step)
    return file_of(Shown(run, kept.stepper, kept.page, more=more, address=kept.address)).encode()


def file_of(*shown: Shown) -> str:
    """The file, of one run or of two beside each other; errors as of `Work`."""
    runs = list(zip(shown, SLOTS, strict=False))
    told = {"languages": [[_in_language(one, slot, language) for one, slot in runs] for language in languages()]}
    if len(shown) > 1:  # each stepper moves the other
        for sides in told["languages"]:
            for side, slot in zip(sides, reversed(SLOTS), strict=True):
                side["stepper"]["moves"] = f"{slot}{STEPPER}"
    page = read_asset("extensions/saving/components/bundle/page.html")
    parts = {"PLOTLY": _plotly(), "RUN": packed(json.dumps(told, ensure_ascii=False)), "SCRIPT": packed(script())}
    for name, text in parts.items():
        page = page.replace(f">{name}<", f">{text}<")
    return page


def packed(text: str) -> str:
    """Text as gzip and base64."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9)).decode("ascii")


@cache
def _plotly() -> str:
    return packed(get_plotlyjs())


def origin(run: Seen) -> Origin:
    """What a run's files are of."""
    query = run.trace.query
    rows = run.trace.rows_note()
    return Origin(checkpoint=run.checkpoint.name, sentence=query.source, decoding=decoding_of(query), rows=rows)


def _in_language(shown: Shown, slot: str, language: str) -> dict[str, Any]:
    run = shown.run
    card, query = run.checkpoint.card, run.trace.query
    spoken = {} if language == ENGLISH else {"lang": tag_of(language), "words": browser_words(language)}
    pages, frames, room = list[dict[str, Any]](), dict[str, Any](), MOST_BYTES // len(languages())
    for page in [shown.page, *(others(shown.page, run) if shown.more else ())]:
        there = run if page is shown.page else seen_on(page, run)
        made = SavedPage(room, slot, origin(run), language)
        saved_page(made, page, there, whole=shown.more, pictures=shown.pictures)
        address = shown.address.replace(f"/{shown.page.path}?", f"/{page.path}?", 1)
        shows = [payload | spoken for payload in made.shows]
        pages.append({"path": page.path, "title": page.title, "address": address, "missing": made.missing(),
                      "shows": shows})  # fmt: skip
        frames |= made.frames
        room = made.room
    title = say("{model}: {source}", model=card.title or run.checkpoint.name, source=query.source)
    return here(
        {
            "tag": tag_of(language),
            "name": name_of(language),
            "title": title,
            "about": [[name, text] for name, text in _about(run).items() if text],
            "live": say("Open this run in Glassformer"),
            "query": {"says": say("The query as JSON"), "json": query.to_json()},
            "dark": say("Dark"),
            "light": say("Light"),
            "stepper": _stepper(shown.stepper, slot, run.view.step) | spoken,
            "pages": pages,
            "frames": frames,
        },
        language,
    )


def _stepper(run: StepperRun, slot: str, step: int) -> dict[str, Any]:
    return {
        "name": f"{slot}{STEPPER}", "run": run.plain, "step": step, "step_revision": 0,
        "covered": False, "revealed_step": None, "compact": False, "led": False, "asks": True, "moves": "",
        "chosen": None, "choosable": False,
    }  # fmt: skip


def _about(run: Seen) -> Mapping[str, str]:
    card = run.checkpoint.card
    return {
        say("Model"): card.title or run.checkpoint.name,
        say("Sentence"): run.trace.query.source,
        say("Output"): run.trace.texts[-1] if run.trace.texts else "",
        say("Languages"): joined(" → ", filter(None, (card.source_language, card.target_language))),
        say("Data and attribution"): card.data,
        say("Attribution"): card.attribution(),
        say("Licence"): card.licence,
        say("Content hash"): run.checkpoint.content_hash,
    }
