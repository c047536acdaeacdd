"""The app opens models of the hub's cache by name, lists them, and downloads only where its operator allows it."""

from functools import partial

import pytest

from glassformer.extensions.hub import hub_models
from glassformer.extensions.hub.hub_cache import pull
from glassformer.server import server_options
from tests.extensions.scripts import OPEN
from tests.pages.conftest import STEP, check
from tests.pages.reading import told


@pytest.fixture
def mode(monkeypatch):
    """A function that sets what the operator allows."""
    hub_models._models.clear()
    return lambda word: monkeypatch.setattr(server_options, "hub", lambda: word)


said = partial(told, kinds=("caption", "markdown", "error", "info", "warning"))


def test_a_name_opens_from_the_cache_or_the_command_that_brings_it_is_said(open_page, hub, mode):
    mode("cache")
    assert "glassformer pull our/tiny" in said(open_page(STEP, model="our/tiny"))
    pull("our/tiny")
    hub_models._models.clear()
    assert open_page(STEP, model="our/tiny", src="ba lo").query_params["model"] == "our/tiny"


@pytest.mark.parametrize(
    ("word", "lists", "fetches"), [("off", False, False), ("cache", True, False), ("fetch", True, True)]
)
def test_the_operator_says_what_visitors_see(open_page, hub, mode, word, lists, fetches):
    pull("our/tiny")
    mode(word)
    test = open_page(OPEN)
    assert any(one.key == hub_models.CHOICE for one in test.selectbox) is lists
    assert any(one.key == hub_models.NAME for one in test.text_input) is fetches


def test_a_visitor_downloads_a_model_and_is_told_why_another_cannot_be(open_page, hub, mode):
    mode("fetch")
    test = open_page(OPEN)
    test.text_input(key=hub_models.NAME).set_value("no/such")
    test.button(key=hub_models.FETCH).click()
    assert "has no model of this name" in said(check(test.run()))
    test.text_input(key=hub_models.NAME).set_value("our/tiny")
    test.button(key=hub_models.FETCH).click()
    assert check(test.run()).query_params["model"] == "our/tiny"


def test_options_of_the_command_line():
    assert server_options.hub(["--hub", "fetch"]) == "fetch"
    assert server_options.hub(["--hub=nonsense"]) == "off"
