"""Where one pass over an output would differ from its steps, pages, pictures and files say which they show."""

from glassformer import charts
from glassformer.extensions.what_if import compare_panels
from glassformer.state.view import SECOND
from tests.extensions.scripts import COMPARE
from tests.pages.conftest import ATTENTION
from tests.pages.reading import figure, opened, payload, sentences
from transformer.runs.interventions import parse
from transformer.runs.trace import BY_STEPS, ROWS_BY_STEPS

CHANGED, UNTOUCHED = "causal-off", "zero-decoder.1.1"


def about(test, key):
    return dict(payload(test, key)["about"])


def under_the_title(test, key):
    return figure(test, key)["layout"]["title"].get("subtitle", {}).get("text", "")


def is_said(test, key):
    """Whether the note, the picture and the file say it; they agree."""
    there = {
        BY_STEPS in sentences(test),
        ROWS_BY_STEPS.casefold() in under_the_title(test, key).casefold(),
        about(test, key).get("rows of maps") == ROWS_BY_STEPS,
    }
    assert len(there) == 1, there
    return there.pop()


def test_the_attention_page_says_it_of_the_decoders_rows(open_page):
    view = {"model": "reverse", "src": "abcdef", "panel": "head", "layer": 1, "head": 1}
    for kind, change in (("decoder", CHANGED), ("cross", CHANGED), ("decoder", UNTOUCHED)):
        assert is_said(open_page(ATTENTION, kind=kind, do=change, **view), "head_map") is (change == CHANGED)
    assert not under_the_title(open_page(ATTENTION, kind="encoder", do=CHANGED, **view), "head_map")


def test_the_second_run_of_a_comparison_says_it(open_page):
    view = {"model": "reverse", "src": "abcdef", "kind": "decoder", "layer": 1, "head": 1}
    test = open_page(COMPARE, b=f"do={CHANGED}", **view)
    assert is_said(test, f"{SECOND}{compare_panels.RIGHT_MAP}")
    assert not under_the_title(test, compare_panels.LEFT_MAP)
    assert "rows of maps" not in about(test, compare_panels.LEFT_MAP)


def test_a_notebooks_figure_says_it():
    checkpoint = opened("reverse")
    trace = checkpoint.run(checkpoint.query("abcdef", interventions=parse(CHANGED)))
    labels = {"queries": trace.read_tokens, "keys": trace.read_tokens, "allowed": None, "title": "x"}
    note = trace.rows_note("decoder")
    for drawn in (
        charts.heatmap(trace.decoder_self[0, 0], note=note, **labels),
        charts.grid(trace.decoder_self, note=note, **labels),
    ):
        assert ROWS_BY_STEPS.casefold() == drawn.layout.title.subtitle.text.casefold()
    assert not trace.rows_note("encoder")
    assert not checkpoint.run("abcdef").rows_note()
