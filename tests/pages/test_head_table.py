"""What heads do is measured once for a run, over the rows that may be seen, by the measure that is chosen."""

import numpy as np
import pytest

from glassformer.attention import AttentionLook, head_table_pictures
from glassformer.attention.head_table_panel import MEASURE, OPEN_BY_MEASURE
from glassformer.runs import loading
from glassformer.server.model_runner import BusyError, ModelRunner
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import choose, go_to, payload, view
from transformer.analysis.head_statistics import measure_by_layer


@pytest.fixture
def table(open_page):
    """A function that opens the part of the page: `table(kind="decoder", layer=2)`."""
    return lambda **options: open_page(ATTENTION, model="reverse", src="abcdef", panel="table", **options)


@pytest.mark.parametrize(
    ("strongest", "said"),
    [
        ([0, 0, 1, 2, 0], "the token before 3/5, “a” 2/5"),  # the first row has no other
        ([0, 1, 2, 3, 0], "itself 4/5, “a” 1/5"),
        ([1, 2, 3, 4, 4], "the token after 4/5, “e” 1/5"),
        ([3, 3, 3, 0, 3], "“d” 4/5, “a” 1/5"),
    ],
)
def test_neighbours_are_named_where_half_of_the_rows_look_at_them(strongest, said):
    rows = np.ones(5, bool)

    def in_words(rows, is_own):
        return head_table_pictures._short(head_table_pictures._looked_at(np.array(strongest), rows, "abcde", is_own))

    assert in_words(rows, True) == said
    assert "token" not in in_words(rows, False)
    assert in_words(np.arange(5) < 1, True) == f"“{'abcde'[strongest[0]]}” 1/1"


def test_the_menu_lists_the_heads_from_the_lowest_and_opens_one_again_and_again(table):
    test = choose(table(kind="encoder"), MEASURE, "self")
    means = test.dataframe[0].value["self"]
    options = test.selectbox(key=OPEN_BY_MEASURE).options
    assert [float(option.split(": ")[1]) for option in options] == pytest.approx(sorted(means), abs=0.0051)
    for _ in range(2):
        check(test.selectbox(key=OPEN_BY_MEASURE).select_index(0).run())
        assert view(test).of(AttentionLook).panel == "head"
        assert options[0].startswith(f"Layer {view(test).layer + 1}, head {view(test).head + 1}")
        check(test.button_group(key="panel").set_value("table").run())
        assert test.selectbox(key=OPEN_BY_MEASURE).value is None


def test_a_measure_that_another_attention_does_not_have_gives_way(table):
    test = choose(table(kind="encoder"), MEASURE, "next")
    assert choose(test, "kind", "decoder").selectbox(key=MEASURE).value == "entropy_share"
    choose(test, "kind", "encoder")
    assert "alt" in payload(test, "head_table_map")
    assert test.selectbox(key=MEASURE).value == "next"  # it was only set aside


def test_the_measures_are_computed_once_for_a_run_and_again_for_other_rows(table, monkeypatch):
    asked, fresh = [], ModelRunner()
    monkeypatch.setattr(
        head_table_pictures,
        "measure_by_layer",
        lambda *of, **how: asked.append(how["n_rows"]) or measure_by_layer(*of, **how),
    )
    monkeypatch.setattr(loading, "runner", lambda: fresh)
    go_to(choose(table(kind="decoder"), MEASURE, "largest"), 3)
    assert asked == [None]
    go_to(table(kind="decoder", guess=1, step=3), 4)
    assert asked == [None, 3, 4]


def test_a_busy_model_is_said(table, monkeypatch):
    test = table()
    busy = BusyError("64 requests are waiting for the model.")

    class Busy:
        trace = loading.runner().trace

        def compute(self, *_, **__):
            raise busy

    monkeypatch.setattr(loading, "runner", Busy)
    check(test.run())
    assert [error.value for error in test.error][-1].startswith("64 requests are waiting")
    assert not test.info
    assert not test.dataframe
