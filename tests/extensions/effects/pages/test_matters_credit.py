"""The parts Pieces and Logit of the page What matters show the numbers of the library."""

import numpy as np

from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.target import ask_each
from glassformer.runs import loading, measurement_jobs
from glassformer.state import session
from tests.extensions.scripts import MATTERS
from tests.pages.conftest import check
from tests.pages.reading import address, figure, opened, payload, told_or_noted
from transformer.runs.array_records import whole


def run_of(test, source, **query):
    name = test.session_state[session.MODEL] or loading.DEFAULT_NAME
    checkpoint = opened(name)
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(source, **query))


def column(test, name):
    table = figure(test, "matters_pieces")["layout"]["meta"]["table"]
    place = table["columns"].index(name)
    return np.array([np.nan if row[place] is None else row[place] for row in table["rows"]])


def test_the_table_has_what_was_measured_and_moves_with_the_step(open_page):
    test = open_page(MATTERS, model="reverse", src="glass", matters="pieces", step=2)
    checkpoint, trace = run_of(test, "glass")
    found = whole(hiding(ask_each(checkpoint, trace)))
    np.testing.assert_allclose(column(test, "Lost if hidden"), -found.probability_change(1), atol=1e-6)
    np.testing.assert_allclose(column(test, "Attention"), trace.maps("cross")[:, :, 1].mean(axis=(0, 1)), atol=1e-6)
    test = open_page(MATTERS, model="reverse", src="glass", matters="pieces", step=4, layer=2, head=1)
    np.testing.assert_allclose(column(test, "Attention"), trace.maps("cross")[1, 0, 3], atol=1e-6)
    before = column(test, "Integrated")
    check(next(one for one in test.selectbox if one.key == "begin").set_value("mean").run())
    assert address(test)["begin"] == "mean"
    assert not np.allclose(column(test, "Integrated"), before)


def test_a_model_of_one_stack_explains_what_it_had_read(open_one_stack):
    test = open_one_stack("decoder", MATTERS, matters="pieces", step=2)
    assert np.isnan(column(test, "Lost if hidden")[-1])
    assert "This model is decoder-only" in payload(test, "matters_pieces")["caption"]
    test = open_one_stack("decoder", MATTERS, matters="logit", step=2)
    assert "cross-attention" not in told_or_noted(test).split("Direct contributions")[0]


def test_what_takes_long_waits_to_be_asked_for(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "AT_ONCE", 0.0)
    test = open_page(MATTERS, model="reverse", src="noon", matters="pieces")
    assert np.isnan(column(test, "Lost if hidden")).all()
    assert not np.isnan(column(test, "Attention")).any()
    begin = [button for button in test.button if button.key.endswith("_begin")]
    assert len(begin) == 2
    check(begin[0].click().run())
    for _ in range(100):
        if not np.isnan(column(test, "Lost if hidden")).any():
            break
        check(test.run())
    checkpoint, trace = run_of(test, "noon")
    found = whole(hiding(ask_each(checkpoint, trace)))
    np.testing.assert_allclose(column(test, "Lost if hidden"), -found.probability_change(0), atol=1e-6)
