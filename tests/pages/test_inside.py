"""The parts of the Inside page draw what the run has at the chosen token, and nothing still to come."""

import pytest

from glassformer.inside import embeddings_panel, ffn_panel, lens_pictures, stream_pictures
from glassformer.runs.picture import declare_all
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, charts_of, figure, go_to, opened, sentences, step

declare_all()


@pytest.fixture
def inside(open_page):
    """A function that opens a part: `inside("lens", model="reverse", step=2)`."""
    return lambda part, **parameters: open_page(INSIDE, inside=part, **parameters)


# ---------------------------------------------------------------- feed-forward


# ---------------------------------------------------------------- logit lens


LENS_TABLE = lens_pictures.table.key


@pytest.mark.parametrize(
    ("part", "reveal", "key"), [("lens", "lens_reveal", LENS_TABLE), ("ffn", ffn_panel.REVEAL, "ffn_effect")]
)
def test_what_would_be_given_away_is_seen_once_it_is_revealed_until_the_next_step(inside, part, reveal, key):
    test = go_to(inside(part, model="reverse", src="abcdef", side="target", guess=1), 3)
    assert key not in charts_of(test)
    check(test.button(key=reveal).click().run())
    assert key in charts_of(test)
    assert key not in charts_of(check(go_to(test, 4)))


# ---------------------------------------------------------------- residual stream


def test_a_token_of_the_output_is_that_of_the_step(inside):
    test = inside("stream", model="reverse", src="abcdef", side="target")
    check(test.selectbox(key="stream_token").set_value(3).run())
    assert step(test) == 4
    check(go_to(test, 2))
    assert test.selectbox(key="stream_token").index == 0  # that of the step, which the browser may have left
    assert "stream of f → e" in figure(test, stream_pictures.added.key)["layout"]["title"]["text"]


def test_a_side_without_that_norm_goes_back_to_the_first(inside):
    test = inside("stream", model="reverse", src="abc", side="target")
    last = len(test.selectbox(key="norm").options) - 1
    check(test.selectbox(key="norm").select_index(last).run())
    check(next(c for c in test.segmented_control if c.key == "side").set_value("source").run())
    assert test.selectbox(key="norm").value == 0


# ---------------------------------------------------------------- pieces


def rows(test, key):
    return figure(test, key)["layout"]["meta"]["table"]["rows"]


def test_any_piece_can_be_typed(inside):
    test = inside("pieces", model="en-fr")
    typed = test.text_input(key=embeddings_panel.TYPED)
    check(typed.set_value("tea").run())
    tokenizer = opened("en-fr").src_tokenizer
    assert figure(test, "piece_neighbours")["layout"]["title"]["text"] == "Nearest to ▁tea"
    kinds = {row[1]: row[2] for row in rows(test, "piece_map")}
    assert kinds[tokenizer.id_of("▁tea")] == "chosen"
    check(test.selectbox(key=embeddings_panel.TOKEN).set_value(1).run())
    assert "▁tea" not in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    assert test.text_input(key=embeddings_panel.TYPED).value == ""
    assert address(test)["key"] == "2"


def test_what_is_not_one_piece_is_said_with_its_parts_and_traditional_characters_are_simplified(inside):
    test = inside("pieces", model="reverse")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("ab").run())
    assert "“ab” is not a single token of this vocabulary; it is split into" in sentences(test)
    assert "Nearest to g" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    check(test.text_input(key=embeddings_panel.TYPED).set_value("b").run())
    assert "not a single token" not in sentences(test)
    assert "Nearest to b" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    test = inside("pieces", model="zh-en")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("學校").run())
    assert "学校" in figure(test, "piece_neighbours")["layout"]["title"]["text"]


def test_another_model_forgets_the_typed_piece(inside):
    test = inside("pieces", model="reverse")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("z").run())
    check(test.selectbox(key=session.MODEL).set_value("zh-en").run())
    assert "z" not in figure(test, "piece_neighbours")["layout"]["title"]["text"].removeprefix("Nearest")
    assert test.text_input(key=embeddings_panel.TYPED).value == ""
