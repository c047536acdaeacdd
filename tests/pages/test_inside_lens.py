"""The logit lens of the Inside page draws what each depth would write at the step, and nothing still covered."""

import numpy as np
import pytest

from glassformer.inside.lens import lens_pictures
from glassformer.runs import loading
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import charts_of, everything, figure, go_to, numbers, opened, payload, sentences, told
from transformer.analysis.logit_lens import logit_lens

LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校" * 3
MAP, TABLE, CURVES = lens_pictures.lens_map.key, lens_pictures.table.key, lens_pictures.curves.key


@pytest.fixture
def page(open_page):
    """A function that opens the lens: `page(model="reverse", step=2)`."""
    return lambda **parameters: open_page(INSIDE, inside="lens", **parameters)


@pytest.mark.parametrize(("name", "depths"), [("zh-en", "layer"), ("reverse", "sublayer")])
def test_the_table_the_curves_and_the_map_are_those_of_the_step(page, name, depths):
    test, checkpoint = page(model=name, step=2, depths=depths), opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(checkpoint.card.examples[0]))
    lens = logit_lens(checkpoint, trace)
    found = lens.by_layer() if depths == "layer" else lens
    np.testing.assert_allclose(numbers(figure(test, TABLE)["data"][0]["z"]), found.top_probs[:, 1], rtol=1e-3)
    for _, _, piece, _, is_chosen in figure(test, TABLE)["layout"]["meta"]["table"]["rows"]:
        assert is_chosen == (piece == trace.tgt_pieces[1])
    probability = numbers(figure(test, CURVES)["data"][0]["y"])
    np.testing.assert_allclose(probability, found.prob[:, 1], rtol=1e-3, atol=1e-9)
    shown = figure(test, MAP)
    np.testing.assert_allclose(numbers(shown["data"][0]["z"]), found.prob, rtol=1e-3, atol=1e-7)
    written = np.exp(trace.log_probs[range(trace.n_steps), trace.tgt_ids])
    np.testing.assert_allclose(numbers(shown["data"][0]["z"])[-1], written, rtol=1e-4)
    assert payload(test, MAP)["clickable"]
    assert (shown["layout"]["shapes"][0]["x0"], shown["layout"]["shapes"][0]["x1"]) == (0.5, 1.5)


def test_guessing_hides_this_step_until_it_is_revealed_and_all_later_ones(page):
    test = page(model="reverse", src="abcdef", guess=1)
    assert charts_of(test) == set()
    assert "What comes next?" in sentences(test)
    check(go_to(test, 3))
    assert charts_of(test) == {MAP}
    shown = figure(test, MAP)
    assert np.shape(numbers(shown["data"][0]["z"]))[1] == 2
    columns = shown["layout"]["meta"]["cells"]["columns"]
    assert [column.partition(": ")[0] for column in columns] == ["step 1", "step 2"]
    for later in ("→ d", "→ c", "→ ▁d", "→ ▁c", "How d came"):
        assert later not in everything(test) + told(test)
    check(test.button(key="lens_reveal").click().run())
    assert charts_of(test) == {MAP, TABLE, CURVES}
    assert numbers(figure(test, MAP)["data"][0]["z"]).shape[1] == 3
    check(go_to(test, 4))
    assert charts_of(test) == {MAP}


def test_a_long_sentence_with_markup_stays_small_and_text(page):
    test = page(
        model="zh-en",
        src="<b>$x$</b>" + "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校" * 3,
        step=9,
        depths="sublayer",
    )
    assert sum(len(element.proto.json) for element in test.get("bidi_component")) < 250_000
    assert "<b>$" not in figure(test, TABLE)["layout"]["title"]["text"]
