"""Pages without a browser: Streamlit's AppTest runs the real scripts in this process."""

import re
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from glassformer.runs import loading
from tests.transformer.one_stack import ALONE, alone
from transformer.extensions import provided

ROOT = Path(__file__).parents[2]
ESCAPED = re.compile(r"\\[!-/:-@\[-`{-~]|\u2060")  # as `glassformer.shared.drawing.plain` makes it
MAIN = ROOT / "main.py"
PAGES = {path.stem: path for path in ROOT.glob("pages/*/*.py")} | {
    entry.path or entry.script.stem: entry.script for entries in provided("pages") for entry in entries
}
NAMES = {script: name for name, script in PAGES.items()}  # in an address
ATTENTION, CHECKPOINTS, FORCING, INSIDE, MASKS, POSITIONS, SEARCH, STEP = (
    PAGES[name] for name in ("attention", "checkpoints", "forcing", "inside", "masks", "positions", "search", "step")
)


@pytest.fixture(scope="session", autouse=True)
def packages_looked_through_once():
    """Each AppTest looks through all installed packages for components; ours come with the app, so none are found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", lambda: [])
        yield


@pytest.fixture(autouse=True)
def shipped_checkpoints_alone(monkeypatch):
    """Look at the project's own checkpoints only, whatever this machine's environment names."""
    monkeypatch.delenv(loading.ENVIRONMENT, raising=False)
    monkeypatch.setattr("sys.argv", ["app.py"])
    st.cache_data.clear()
    yield
    st.cache_data.clear()


@pytest.fixture
def open_page():
    """A function that opens an address: `open_page(STEP, model="reverse", step=3)`."""

    def open_one(page=STEP, **parameters):
        test = AppTest.from_file(str(page), default_timeout=300)
        test.query_params.update({name: str(value) for name, value in parameters.items()})
        return check(test.run())

    return open_one


@pytest.fixture(scope="session")
def one_stack(tmp_path_factory):
    """A folder with two tiny checkpoints: "decoder alone" and "encoder alone"."""
    folder = tmp_path_factory.mktemp("one stack")
    for stack in ALONE:
        alone(stack, folder)
    return folder


@pytest.fixture
def open_one_stack(one_stack, open_page, monkeypatch):
    """A function that opens a page on a model of one stack: `open_one_stack("decoder", STEP, step=2)`."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(one_stack))
    return lambda stack, page=STEP, **parameters: open_page(
        page, model=f"{stack} alone", **({"src": "ba lo mi"} | parameters)
    )


@pytest.fixture
def reverse(open_page):
    """A function that opens the Step page on the model that reverses letters: `reverse(src="abc")`."""
    return lambda **parameters: open_page(STEP, model="reverse", **parameters)


@pytest.fixture
def masks(open_page):
    """A function that opens the Masks page on the model that reverses letters: `masks(mask="causal")`."""
    return lambda **parameters: open_page(MASKS, **({"model": "reverse"} | parameters))


def check(test):
    """The test, if its page ran to the end."""
    assert not test.exception, test.exception
    shown = [option for box in (*test.selectbox, *test.multiselect) for option in box.options]  # no Markdown there
    shown += [box.placeholder for box in (*test.text_input, *test.text_area)]
    assert not [text for text in shown if ESCAPED.search(text)], "Markdown where text is shown as it is"
    return test
