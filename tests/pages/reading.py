"""What a page shows, read out of AppTest; and what a browser would send."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from glassformer.components.stepper_view import rest_key
from glassformer.runs import loading
from glassformer.state import session
from glassformer.state.view import MAIN, Slot, View
from glassformer.step.step_panels import FORCE_CHOICE
from tests.pages.conftest import check
from transformer.checkpoint.load import Checkpoint


def payload(test: AppTest, key: str) -> dict[str, Any]:
    """The data that a component of ours got."""
    found = [element for element in test.get("bidi_component") if element.key == key]
    assert found, f"there is no component {key}"
    data: dict[str, Any] = json.loads(found[0].proto.json)[0]
    return data


def figure(test: AppTest, key: str) -> dict[str, Any]:
    """The figure that a chart got."""
    drawn: dict[str, Any] = json.loads(payload(test, key)["figure"])
    return drawn


def numbers(array: dict[str, Any] | list[float]) -> np.ndarray:
    """The numbers of a figure's array, sent as base64 or as a list."""
    if isinstance(array, list):
        return np.array(array)
    raw = base64.b64decode(array["bdata"])
    flat = three_byte_numbers(raw) if array["dtype"] == "f3" else np.frombuffer(raw, dtype=array["dtype"])
    shape = array.get("shape")
    if array.get("there") is not None:
        return spread_out(flat, array["there"], [int(n) for n in shape.split(",")])
    return flat.reshape([int(n) for n in str(shape).split(",")]) if shape else flat


def three_byte_numbers(raw: bytes) -> np.ndarray:
    """32-bit numbers that came without their lowest byte."""
    whole = np.pad(np.frombuffer(raw, np.uint8).reshape(-1, 3), ((0, 0), (1, 0)))
    return whole.view(np.float32).ravel()


def spread_out(flat: np.ndarray, there: str, shape: Sequence[int]) -> np.ndarray:
    """A large map, of which the numbers were sent and bits that say where they are; one number stands for all."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(there), np.uint8)) if there else np.ones(np.prod(shape))
    cells = np.full(shape, 0 if flat.dtype.kind == "i" else np.nan, dtype=flat.dtype)
    cells[bits[: cells.size].astype(bool).reshape(shape)] = flat
    return cells


def opened(name: str) -> Checkpoint:
    """A checkpoint as the pages have it."""
    return loading.open_checkpoint(loading.usable()[name])


def run_of(test: AppTest) -> dict[str, Any]:
    """The run that the stepper shows."""
    run: dict[str, Any] = payload(test, session.STEPPER)["run"]
    return run


def output(test: AppTest) -> str:
    """The whole output as text; each step sends how much of the text before stays, and what follows."""
    text = ""
    for units, added in run_of(test)["texts"]:
        text = text.encode("utf-16-le")[: 2 * units].decode("utf-16-le") + added
    return text


def step(test: AppTest) -> int:
    """The step that Python believes in, from 1."""
    return view(test).step + 1


def view(test: AppTest, slot: Slot = MAIN) -> View:
    """What a slot looks at."""
    found: View = test.session_state[f"{slot}{session.STANDING}"].view
    return found


def go_to(test: AppTest, number: int) -> AppTest:
    """Come to rest on a step, counted from 1, as the stepper in the browser reports it."""
    data = payload(test, session.STEPPER)
    report = {"run_id": data["run"]["run_id"], "step_revision": data["step_revision"], "step": number - 1}
    test.session_state[session.STEPPER] = {"step": report}
    return test.run()


def go_back(test: AppTest, address: dict[str, Any]) -> AppTest:
    """Press the browser's Back button: the page runs again with an earlier address and the same widgets."""
    test.query_params.clear()
    for name, value in address.items():
        test.query_params[name] = value
    return test.run()


def address(test: AppTest) -> dict[str, Any]:
    """What the address bar says."""
    return dict(test.query_params)


def sentences(test: AppTest) -> str:
    """Notes and errors, without the escapes."""
    return "\n".join(
        element.value.replace("\\", "") for element in (*test.info, *test.error, *test.success, *test.warning)
    )


HELPED = ("markdown", "caption", "latex", "heading", "subheader", "button")


def told(test: AppTest, kinds: Sequence[str] = ("markdown", "caption")) -> str:
    """What the page says in Markdown, captions and next to charts, or in other elements, without the escapes."""
    charts = [json.loads(element.proto.json)[0].get("said") or {} for element in test.get("bidi_component")]
    beside = [line for said in charts for part in ("above", "below") if (line := said.get(part))]
    lines = [element.value.replace("\\", "") for kind in kinds for element in test.get(kind)]
    if "markdown" in kinds:  # what is behind a question mark is said, too
        beside += [said for kind in HELPED for one in test.get(kind) if (said := getattr(one.proto, "help", ""))]
    return "\n".join(beside * ("markdown" in kinds) + [line.replace("\\", "") for line in lines])


told_or_noted = partial(told, kinds=("markdown", "caption", "info"))


SLIDER = "training_time"  # of a model with snapshots, where the extension is there
UNSEEN = {rest_key(f"{slot}{session.STEPPER}") for slot in session.SLOTS} | {SLIDER, f"{SLIDER}_page"}


def keys_of(test: AppTest) -> set[str]:
    """The keys of the components of ours that are seen: charts, the flow, the stepper."""
    return {element.key for element in test.get("bidi_component")} - UNSEEN


def charts_of(test: AppTest) -> set[str]:
    """Those but for the stepper's."""
    return keys_of(test) - {session.STEPPER}


def everything(test: AppTest) -> str:
    """All text of the page, the data of the components included, but for the stepper's run."""
    parts = [sentences(test), *(c.value for c in test.caption), *(o for r in test.radio for o in r.options)]
    for element in test.get("bidi_component"):
        if element.key not in {session.STEPPER, *UNSEEN}:
            data = payload(test, element.key)
            parts += [str(json.loads(data["figure"])), data["alt"]]
    return "\n".join(parts)


def type_source(test: AppTest, text: str) -> AppTest:
    """Type a sentence."""
    return check(test.text_input(key=session.SOURCE).set_value(text).run())


def force(test: AppTest, piece: str) -> AppTest:
    """Force a piece at this step by its name."""
    return check(test.text_input(key=FORCE_CHOICE).set_value(piece).run())


def labels(test: AppTest) -> list[str]:
    """The listed outputs, without the escapes; none where there is nothing to choose."""
    return [label.replace("\\", "") for radio in test.radio for label in radio.options]
