"""What a page shows, read out of AppTest; and what a browser would send."""

import base64
import json
from functools import partial

import numpy as np

from glassformer.components.stepper_view import rest_key
from glassformer.runs import loading
from glassformer.state import session
from glassformer.state.view import MAIN
from glassformer.step.step_panels import FORCE_CHOICE
from tests.pages.conftest import check

CONTROLS = ("segmented_control", "selectbox", "multiselect", "select_slider", "slider", "text_input", "number_input",
            "toggle")  # fmt: skip


def controls(test):
    """The controls of a page by their keys, but for radios, whose options are of the run."""
    return {one.key: one for kind in CONTROLS for one in getattr(test, kind)}


def payload(test, key):
    """The data that a component of ours got."""
    found = [element for element in test.get("bidi_component") if element.key == key]
    assert found, f"there is no component {key}"
    return json.loads(found[0].proto.json)[0]


def figure(test, key):
    return json.loads(payload(test, key)["figure"])


def title(test, key):
    return figure(test, key)["layout"]["title"]["text"]


def numbers(array):
    """The numbers of a figure's array, sent as base64 or as a list."""
    if isinstance(array, list):
        return np.array(array)
    raw = base64.b64decode(array["bdata"])
    flat = three_byte_numbers(raw) if array["dtype"] == "f3" else np.frombuffer(raw, dtype=array["dtype"])
    shape = [int(n) for n in str(array["shape"]).split(",")] if array.get("shape") else flat.shape
    if array.get("there") is not None:
        return spread_out(flat, array["there"], shape)
    return flat.reshape(shape)


def three_byte_numbers(raw):
    """32-bit numbers that came without their lowest byte."""
    whole = np.pad(np.frombuffer(raw, np.uint8).reshape(-1, 3), ((0, 0), (1, 0)))
    return whole.view(np.float32).ravel()


def spread_out(flat, there, shape):
    """A large map, of which the numbers were sent and bits that say where they are; one number stands for all."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(there), np.uint8)) if there else np.ones(np.prod(shape))
    cells = np.full(shape, 0 if flat.dtype.kind == "i" else np.nan, dtype=flat.dtype)
    cells[bits[: cells.size].astype(bool).reshape(shape)] = flat
    return cells


def z_of(test, key):
    """The numbers of a map."""
    return numbers(figure(test, key)["data"][0]["z"])


def opened(name):
    """A checkpoint as the pages have it."""
    return loading.open_checkpoint(loading.usable()[name])


def run_of(test):
    """The run that the stepper shows."""
    return payload(test, session.STEPPER)["run"]


def output(test):
    """The whole output as text; each step sends how much of the text before stays, and what follows."""
    text = ""
    for units, added in run_of(test)["texts"]:
        text = text.encode("utf-16-le")[: 2 * units].decode("utf-16-le") + added
    return text


def view(test, slot=MAIN):
    """What a slot looks at."""
    return test.session_state[f"{slot}{session.STANDING}"].view


def step(test):
    """The step that Python believes in, from 1."""
    return view(test).step + 1


def go_to(test, number, slot=MAIN):
    """Come to rest on a step, counted from 1, as the stepper in the browser reports it."""
    data = payload(test, f"{slot}{session.STEPPER}")
    report = {"run_id": data["run"]["run_id"], "step_revision": data["step_revision"], "step": number - 1}
    test.session_state[f"{slot}{session.STEPPER}"] = {"step": report}
    return check(test.run())


def go_back(test, address):
    """Press the browser's Back button: the page runs again with an earlier address and the same widgets."""
    test.query_params.clear()
    test.query_params.update(address)
    return check(test.run())


def address(test):
    """What the address bar says."""
    return dict(test.query_params)


def type_source(test, text):
    return check(test.text_input(key=session.SOURCE).set_value(text).run())


def press(test, key):
    return check(test.button(key=key).click().run())


def choose(test, key, value):
    """Set a control of whatever kind."""
    return check(controls(test)[key].set_value(value).run())


def force(test, piece):
    """Force a piece at this step by its name."""
    return choose(test, FORCE_CHOICE, piece)


def sentences(test):
    """Notes and errors, without the escapes."""
    notes = (*test.info, *test.error, *test.success, *test.warning)
    return "\n".join(element.value.replace("\\", "") for element in notes)


HELPED = ("markdown", "caption", "latex", "heading", "subheader", "button")


def told(test, kinds=("markdown", "caption")):
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


def keys_of(test):
    """The keys of the components of ours that are seen: charts, the flow, the stepper."""
    return {element.key for element in test.get("bidi_component")} - UNSEEN


def charts_of(test):
    """Those but for the stepper's."""
    return keys_of(test) - {session.STEPPER}


def everything(test):
    """All text of the page, the data of the components included, but for the stepper's run."""
    parts = [sentences(test), *(c.value for c in test.caption), *(o for r in test.radio for o in r.options)]
    for element in test.get("bidi_component"):
        if element.key not in {session.STEPPER, *UNSEEN}:
            data = payload(test, element.key)
            parts += [str(json.loads(data["figure"])), data["alt"]]
    return "\n".join(parts)


def labels(test):
    """The listed outputs, without the escapes; none where there is nothing to choose."""
    return [label.replace("\\", "") for radio in test.radio for label in radio.options]
