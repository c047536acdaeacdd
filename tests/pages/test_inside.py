"""The parts of the Inside page draw what the run has at the chosen token, and nothing still to come."""

import json

import numpy as np
import pytest

from glassformer.inside import embeddings_panel, ffn_panel, lens_pictures, stream_pictures
from glassformer.runs import loading
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import (
    address,
    charts_of,
    everything,
    figure,
    go_to,
    numbers,
    opened,
    payload,
    sentences,
    step,
    told,
)
from transformer.runs.running import replay

declare_all()

LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 3


@pytest.fixture
def inside(open_page):
    """A function that opens a part: `inside("lens", model="reverse", step=2)`."""
    return lambda part, **parameters: open_page(INSIDE, inside=part, **parameters)


@pytest.mark.parametrize(("part", "most"), [("ffn", 150_000), ("lens", 250_000), ("stream", 270_000)])
def test_a_long_sentence_with_markup_stays_small_and_text(inside, part, most):
    test = inside(part, model="zh-en", src=f"<b>$x$</b>{LONG}", step=9, depths="sublayer")
    sent = {element.key: element.proto.json for element in test.get("bidi_component")}
    assert charts_of(test) == set(PAGES["inside"].parts[part].pictures) - {"ffn_effect"}
    assert sum(len(one) for key, one in sent.items() if key != session.STEPPER) < most
    for key in charts_of(test):
        assert "<b>$" not in json.dumps(figure(test, key)["layout"]["title"])
        assert "<b>$" not in json.dumps(figure(test, key)["layout"].get("meta", {}).get("ticks", {}))


# ---------------------------------------------------------------- feed-forward

STACKS = {"source": "encoder", "target": "decoder"}


def activations(name, side, layer, source=None):
    """Of all tokens of a run [token, neuron]."""
    checkpoint = opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(source or checkpoint.card.examples[0]))
    site = f"{STACKS[side]}.{layer}.ffn.activation"
    return replay(checkpoint, trace, [site])[site][: len(trace.src_ids) if side == "source" else trace.n_steps]


def test_side_layer_token_and_neuron_stay_in_the_address(inside):
    test = inside("ffn", model="reverse", src="abcdef")
    check(test.number_input(key=ffn_panel.NEURON).set_value(9).run())
    assert address(test)["neuron"] == "9"
    assert "neuron 9 of layer 1" in figure(test, "ffn_tokens")["layout"]["title"]["text"]
    check(test.selectbox(key=ffn_panel.TOKEN).set_value(3).run())
    assert (address(test)["key"], address(test)["neuron"]) == ("4", "9")
    check(test.selectbox(key=ffn_panel.LAYER).set_value(1).run())
    assert address(test)["layer"] == "2"
    assert "neuron" not in address(test)  # of another layer it is another neuron
    check(next(c for c in test.segmented_control if c.key == "side").set_value("target").run())
    assert address(test)["side"] == "target"
    check(test.selectbox(key=ffn_panel.TOKEN).set_value(2).run())
    assert step(test) == 3
    assert "e → d" in figure(test, "ffn_active")["layout"]["title"]["text"]


def test_guessing_hides_activations_still_to_come(inside):
    test = go_to(inside("ffn", model="reverse", src="abcdef", side="target", guess=1), 3)
    labels = [label.split(" → ") for label in figure(test, "ffn_tokens")["layout"]["meta"]["ticks"]["xaxis"]["labels"]]
    assert [read for read, _ in labels] == ["&#60;s&#62;", "f", "e"]
    assert labels[-1][1] == "?"
    assert numbers(figure(test, "ffn_shares")["data"][0]["z"]).shape == (2, 3)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3
    seen = activations("reverse", "target", 0, "abcdef")[:3]
    assert f"{(seen == 0).mean():.1%} of this layer's activations" in told(test)
    assert "ffn_effect" not in charts_of(test)
    check(test.button(key=ffn_panel.REVEAL).click().run())
    assert "ffn_effect" in charts_of(test)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3


# ---------------------------------------------------------------- logit lens


LENS_MAP, LENS_TABLE, LENS_CURVES = lens_pictures.lens_map.key, lens_pictures.table.key, lens_pictures.curves.key


def test_guessing_hides_this_step_until_it_is_revealed_and_all_later_ones(inside):
    test = inside("lens", model="reverse", src="abcdef", guess=1)
    assert charts_of(test) == set()
    assert "What comes next?" in sentences(test)
    check(go_to(test, 3))
    assert charts_of(test) == {LENS_MAP}
    shown = figure(test, LENS_MAP)
    assert np.shape(numbers(shown["data"][0]["z"]))[1] == 2
    columns = shown["layout"]["meta"]["cells"]["columns"]
    assert [column.partition(": ")[0] for column in columns] == ["step 1", "step 2"]
    for later in ("→ d", "→ c", "→ ▁d", "→ ▁c", "How d came"):
        assert later not in everything(test) + told(test)
    check(test.button(key="lens_reveal").click().run())
    assert charts_of(test) == {LENS_MAP, LENS_TABLE, LENS_CURVES}
    assert numbers(figure(test, LENS_MAP)["data"][0]["z"]).shape[1] == 3
    check(go_to(test, 4))
    assert charts_of(test) == {LENS_MAP}


# ---------------------------------------------------------------- residual stream


def title(test, picture):
    return figure(test, picture.key)["layout"]["title"]["text"]


def test_a_token_of_the_output_is_that_of_the_step_and_one_of_the_source_stays_in_the_address(inside):
    test = inside("stream", model="reverse", src="abcdef", side="target")
    check(test.selectbox(key="stream_token").set_value(3).run())
    assert step(test) == 4
    check(go_to(test, 2))
    assert test.selectbox(key="stream_token").index == 0  # that of the step, which the browser may have left
    assert "stream of f → e" in title(test, stream_pictures.added)
    test = inside("stream", model="reverse", src="abcdef")
    check(test.selectbox(key="stream_token").set_value(2).run())
    assert (address(test)["key"], step(test)) == ("3", 1)
    assert "stream of c" in title(test, stream_pictures.added)


def test_a_side_without_that_norm_goes_back_to_the_first(inside):
    test = inside("stream", model="reverse", src="abc", side="target")
    last = len(test.selectbox(key="norm").options) - 1
    check(test.selectbox(key="norm").select_index(last).run())
    check(next(c for c in test.segmented_control if c.key == "side").set_value("source").run())
    assert test.selectbox(key="norm").value == 0


def test_guessing_hides_the_tokens_still_to_come(inside):
    test = inside("stream", model="reverse", src="abcdef", side="target", guess=1, step=3)
    options = test.selectbox(key="stream_token").options[1:]
    assert (len(options), options[-1].endswith("→ ?")) == (3, True)
    assert len(set(figure(test, stream_pictures.size.key)["data"][0]["customdata"])) == 2
    assert len(numbers(figure(test, stream_pictures.norm.key)["data"][0]["y"])) == 3
    assert not [key for key in charts_of(test) if "→ d" in str(payload(test, key))]


# ---------------------------------------------------------------- pieces


def nearest(table, tokenizer, row, by, count):
    """Ids of the nearest ordinary rows with their cosine and distance."""
    cosine = table @ table[row] / np.linalg.norm(table, axis=1) / np.linalg.norm(table[row])
    distance = np.linalg.norm(table - table[row], axis=1)
    order = np.argsort(-cosine if by == "cosine" else distance, kind="stable")
    kept = [i for i in order.tolist() if i != row and not tokenizer.is_special(i)][:count]
    return kept, cosine[kept], distance[kept]


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


def test_guessing_hides_pieces_still_to_come(inside):
    test = inside("pieces", model="reverse", src="abcdef", side="target", guess=1, query=6)
    go_to(test, 3)
    assert len(test.selectbox(key=embeddings_panel.TOKEN).options[1:]) == 3
    assert "Nearest to e" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    where = {row[0]: row[2] for row in rows(test, "piece_map")}
    assert {piece for piece, kind in where.items() if kind in ("both", "output")} == {"<s>", "f", "e"}
    assert {where[piece] for piece in "abcd"} == {"source"}


def test_many_pieces_stay_small_and_text(inside):
    test = inside(
        "pieces",
        model="zh-en",
        src="<b>$x$</b>我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里abcdefghijklmn",
    )
    for key in ("piece_neighbours", "piece_map"):
        assert len(json.dumps(payload(test, key))) < 60_000
    texts = [text for trace in figure(test, "piece_map")["data"] for text in trace["text"]]
    assert any(texts)
    assert not any("<" in text or "$" in text for text in texts)


def test_another_model_forgets_the_typed_piece(inside):
    test = inside("pieces", model="reverse")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("z").run())
    check(test.selectbox(key=session.MODEL).set_value("zh-en").run())
    assert "z" not in figure(test, "piece_neighbours")["layout"]["title"]["text"].removeprefix("Nearest")
    assert test.text_input(key=embeddings_panel.TYPED).value == ""
