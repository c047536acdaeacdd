"""A run as one file: HTML that opens by a double click, without a network, with its stepper and its pictures.

The pictures are those of the page that shows the run, but for what is work for the model at each step, as the page
itself draws them, with their frames; in every language of the app. Scripts and data are packed with gzip, which
browsers unpack: Plotly's script, of which the app's own version is taken, would else be two thirds of the file.

All text goes in as JSON, and comes out as text.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from plotly.offline import get_plotlyjs

from ui.components.assets import read_asset, script
from ui.components.stepper.stepper import StepperRun
from ui.runs.frames import Again, NoFramesError, frames_of
from ui.runs.picture import Page, Picture
from ui.runs.seen import Seen
from ui.shared.door import here
from ui.shared.drawing import at_a_moment
from ui.shared.saving import Origin, decoding_of
from ui.state.language import tag_of
from ui.state.session import STEPPER
from words import ENGLISH, joined, languages, name_of, say
from words.browser import browser_words

SLOTS: Final = ("saved-", "beside-")  # of their own, as that of a second run
MOST_BYTES: Final = 20_000_000  # of pictures and frames before they are packed; what comes then is left out


@dataclass(frozen=True)
class Shown:
    """A run with the pictures that a file shows of it."""

    run: Seen
    stepper: StepperRun
    pictures: Sequence[Picture[Any]]
    address: str = ""  # opens the same live; "" for none


@dataclass(frozen=True)
class Kept:
    """What a file is made of; a session keeps it, so it holds no run."""

    again: Again
    page: Page  # whose pictures it has
    stepper: StepperRun
    address: str  # opens the same live; "" for none


def saved_run(kept: Kept) -> bytes:
    """The file, made without a session. Errors as of `Again.run`, and of `Work`."""
    run = kept.again.run()
    return file_of(Shown(run, kept.stepper, list(_pictures(kept.page, run)), kept.address)).encode()


def file_of(*shown: Shown) -> str:
    """The file, of one run or of two beside each other; errors as of `Work`."""
    runs = list(zip(shown, SLOTS, strict=False))
    told = {"languages": [[_in_language(one, slot, language) for one, slot in runs] for language in languages()]}
    page = read_asset("bundle/page.html")
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
    charts, frames = list[dict[str, Any]](), dict[str, Any]()
    room = MOST_BYTES // len(languages())
    for picture in shown.pictures:
        made = _chart(picture, run, slot, language, room)
        if made is None:
            continue
        payload, moves = made
        charts.append(payload | spoken)
        if moves is not None:
            frames[payload["follows"]] = moves
        room -= len(json.dumps(made))
    title = say("{model}: {source}", model=card.title or run.checkpoint.name, source=query.source)
    return here(
        {
            "tag": tag_of(language),
            "name": name_of(language),
            "title": title,
            "about": [[name, text] for name, text in _about(run).items() if text],
            "live": {"says": say("Open this run in Glassformer"), "address": shown.address}
            if shown.address
            else None,
            "query": {"says": say("The query as JSON"), "json": query.to_json()},
            "dark": say("Dark"),
            "light": say("Light"),
            "stepper": _stepper(shown.stepper, slot, run.view.step) | spoken,
            "charts": charts,
            "frames": frames,
        },
        language,
    )


def _pictures(page: Page, run: Seen) -> Iterable[Picture[Any]]:
    """Those of the part that is looked at, then those of parts in which pictures are all that there is to see."""
    chosen = page.chosen(run.view)
    others = [part for part in page.parts.values() if part != chosen and not part.asks]
    parts = [chosen, *others] if chosen else others
    return (picture for part in parts for picture in part.pictures.values() if picture.follows != "server")


def _chart(
    picture: Picture[Any], run: Seen, slot: str, language: str, room: int
) -> tuple[dict[str, Any], Any] | None:
    """What the chart's component is given, and its frames, if it has any; None where there is nothing to show."""
    plot = picture.of(run)
    if plot is None:
        return None
    key, of = f"{slot}{picture.key}", origin(run)
    moment = at_a_moment(plot.spec, of, key=picture.key, language=language, **plot.words)[1]
    if len(moment["figure"]) > room:
        return None
    moves = None
    if picture.follows != "still" and run.trace.n_steps > 1:
        try:
            moves = frames_of(picture, run, of, language, most=room)
        except NoFramesError:
            return None  # at other steps it would say what is not so
    follows = f"{language} {key}" if moves else "still"
    more = {"name": key, "table": "", "fit": 0, "clickable": False, "follows": follows, "step": run.view.step}
    return moment | more, moves


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
