"""The embeddings part of the Inside page shows what lies nearest to the piece that is chosen or typed."""

import json

import numpy as np
import pytest

from glassformer.inside.pieces import pieces_panel as embeddings_panel
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, figure, go_to, numbers, opened, payload, sentences, told


@pytest.fixture
def page(open_page):
    """A function that opens the part: `page(model="reverse", side="target")`."""
    return lambda **parameters: open_page(INSIDE, inside="pieces", **parameters)


def table_of(checkpoint, side):
    """The table of a side in float64, and its ordinary pieces."""
    table = checkpoint.model.src_table if side == "source" else checkpoint.model.target_table
    tokenizer = checkpoint.src_tokenizer if side == "source" else checkpoint.tgt_tokenizer
    return table.detach().numpy().astype(float), tokenizer


def nearest(table, tokenizer, row, by, count):
    """Ids of the nearest ordinary rows with their cosine and distance."""
    cosine = table @ table[row] / np.linalg.norm(table, axis=1) / np.linalg.norm(table[row])
    distance = np.linalg.norm(table - table[row], axis=1)
    order = np.argsort(-cosine if by == "cosine" else distance, kind="stable")
    kept = [i for i in order.tolist() if i != row and not tokenizer.is_special(i)][:count]
    return kept, cosine[kept], distance[kept]


def rows(test, key):
    return figure(test, key)["layout"]["meta"]["table"]["rows"]


def control(test, key):
    return next(element for element in test.segmented_control if element.key == key)


@pytest.mark.parametrize(("name", "side", "by"), [("zh-en", "target", "distance"), ("reverse", "source", "cosine")])
def test_neighbours_and_map_are_those_of_the_table(page, name, side, by):
    test = page(model=name, side=side, **({"key": 2} if side == "source" else {"query": 2}))
    if by == "distance":
        check(control(test, "nearness").set_value("distance").run())
    checkpoint = opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(checkpoint.card.examples[0]))
    table, tokenizer = table_of(checkpoint, side)
    chosen = (trace.src_ids if side == "source" else trace.read_ids)[1]
    ids, cosine, distance = nearest(table, tokenizer, chosen, by, 10)
    found = rows(test, "piece_neighbours")
    assert [row[3] for row in found] == ids
    assert [row[0] for row in found] == [tokenizer.piece(i) for i in ids]
    places = (1, 2) if by == "cosine" else (2, 1)  # what is drawn comes first
    np.testing.assert_allclose([row[places[0]] for row in found], cosine, atol=1e-6)
    np.testing.assert_allclose([row[places[1]] for row in found], distance, atol=1e-5)
    drawn = numbers(figure(test, "piece_neighbours")["data"][0]["x"])
    np.testing.assert_allclose(drawn, cosine if by == "cosine" else distance, rtol=1e-5)
    assert f"has length {np.linalg.norm(table[chosen]):.3f}" in told(test)

    points = {row[1]: row[2] for row in rows(test, "piece_map")}
    assert set(trace.src_ids if side == "source" else trace.read_ids) | set(ids) <= set(points)
    assert points[ids[-1]] in ("neighbour", "both", "source", "output")


def test_any_piece_can_be_typed(page):
    test = page(model="en-fr")
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


def test_what_is_not_one_piece_is_said_with_its_parts_and_traditional_characters_are_simplified(page):
    test = page(model="reverse")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("ab").run())
    assert "“ab” is not a single piece of this vocabulary; it is split into" in sentences(test)
    assert "Nearest to g" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    check(test.text_input(key=embeddings_panel.TYPED).set_value("b").run())
    assert "not a single piece" not in sentences(test)
    assert "Nearest to b" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    test = page(model="zh-en")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("學校").run())
    assert "学校" in figure(test, "piece_neighbours")["layout"]["title"]["text"]


def test_special_pieces_have_neighbours_and_are_nobodys(page):
    test = page(model="reverse", src="ab", key=3)
    tokenizer = opened("reverse").src_tokenizer
    assert len(rows(test, "piece_neighbours")) == 10
    assert not any(tokenizer.is_special(row[3]) for row in rows(test, "piece_neighbours"))
    assert not any(tokenizer.is_special(row[1]) for row in rows(test, "piece_map") if row[2] == "neighbour")


def test_guessing_hides_what_is_still_to_come(page):
    test = page(model="reverse", src="abcdef", side="target", guess=1, query=6)
    go_to(test, 3)
    assert len(test.selectbox(key=embeddings_panel.TOKEN).options[1:]) == 3
    assert "Nearest to e" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    where = {row[0]: row[2] for row in rows(test, "piece_map")}
    assert {piece for piece, kind in where.items() if kind in ("both", "output")} == {"<s>", "f", "e"}
    assert {where[piece] for piece in "abcd"} == {"source"}


def test_the_current_step_is_followed_until_a_piece_is_chosen(page):
    test = page(model="reverse", src="abcdef", side="target")
    go_to(test, 4)
    assert "Nearest to d" in figure(test, "piece_neighbours")["layout"]["title"]["text"]
    check(test.selectbox(key=embeddings_panel.TOKEN).set_value(1).run())
    go_to(test, 5)
    assert "Nearest to f" in figure(test, "piece_neighbours")["layout"]["title"]["text"]


def test_many_pieces_stay_small_and_text(page):
    test = page(
        model="zh-en",
        src="<b>$x$</b>我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里abcdefghijklmn",
    )
    for key in ("piece_neighbours", "piece_map"):
        assert len(json.dumps(payload(test, key))) < 60_000
    texts = [text for trace in figure(test, "piece_map")["data"] for text in trace["text"]]
    assert any(texts)
    assert not any("<" in text or "$" in text for text in texts)


def test_another_model_forgets_the_typed_piece(page):
    test = page(model="reverse")
    check(test.text_input(key=embeddings_panel.TYPED).set_value("z").run())
    check(test.selectbox(key=session.MODEL).set_value("zh-en").run())
    assert "z" not in figure(test, "piece_neighbours")["layout"]["title"]["text"].removeprefix("Nearest")
    assert test.text_input(key=embeddings_panel.TYPED).value == ""
