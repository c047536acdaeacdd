"""The parts of the Inside page draw what the run has at the chosen token, at the step, and nothing still to come."""

import pytest

from glassformer.inside import embeddings_panel, ffn_panel, lens_pictures, stream_pictures
from glassformer.inside import speedups_panel as fast
from glassformer.runs import measurement_jobs
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import (
    address,
    charts_of,
    choose,
    figure,
    go_to,
    keys_of,
    numbers,
    opened,
    press,
    sentences,
    step,
    title,
    told,
    z_of,
)
from transformer.analysis.speed_gains import Gains


@pytest.fixture
def inside(open_page):
    """A function that opens a part: `inside("lens", model="reverse", step=2)`."""
    return lambda part, **parameters: open_page(INSIDE, inside=part, **{"model": "reverse"} | parameters)


@pytest.mark.parametrize(
    ("part", "reveal", "key"),
    [("lens", "lens_reveal", lens_pictures.table.key), ("ffn", ffn_panel.REVEAL, "ffn_effect")],
)
def test_what_would_be_given_away_is_seen_once_it_is_revealed_until_the_next_step(inside, part, reveal, key):
    test = go_to(inside(part, src="abcdef", side="target", guess=1), 3)
    assert key not in charts_of(test)
    assert key in charts_of(press(test, reveal))
    assert key not in charts_of(go_to(test, 4))


def test_a_token_of_the_output_is_that_of_the_step(inside):
    test = choose(inside("stream", src="abcdef", side="target"), "stream_token", 3)
    assert step(test) == 4
    go_to(test, 2)
    assert test.selectbox(key="stream_token").index == 0  # that of the step, which the browser may have left
    assert "stream of f → e" in title(test, stream_pictures.added.key)


def test_a_side_without_that_norm_goes_back_to_the_first(inside):
    test = inside("stream", src="abc", side="target")
    last = len(test.selectbox(key="norm").options) - 1
    check(test.selectbox(key="norm").select_index(last).run())
    assert choose(test, "side", "source").selectbox(key="norm").value == 0


def test_any_piece_can_be_typed_and_another_model_forgets_it(inside):
    test = choose(inside("pieces", model="en-fr"), embeddings_panel.TYPED, "tea")
    tokenizer = opened("en-fr").src_tokenizer
    assert title(test, "piece_neighbours") == "Nearest to ▁tea"
    kinds = {row[1]: row[2] for row in figure(test, "piece_map")["layout"]["meta"]["table"]["rows"]}
    assert kinds[tokenizer.id_of("▁tea")] == "chosen"
    choose(test, embeddings_panel.TOKEN, 1)
    assert "▁tea" not in title(test, "piece_neighbours")
    assert test.text_input(key=embeddings_panel.TYPED).value == ""
    assert address(test)["key"] == "2"
    choose(test, embeddings_panel.TYPED, "tea")
    choose(test, session.MODEL, "zh-en")
    assert "tea" not in title(test, "piece_neighbours")
    assert test.text_input(key=embeddings_panel.TYPED).value == ""


def test_what_is_not_one_piece_is_said_with_its_parts_and_traditional_characters_are_simplified(inside):
    test = choose(inside("pieces"), embeddings_panel.TYPED, "ab")
    assert "“ab” is not a single token of this vocabulary; it is split into" in sentences(test)
    assert "Nearest to g" in title(test, "piece_neighbours")
    choose(test, embeddings_panel.TYPED, "b")
    assert "not a single token" not in sentences(test)
    assert "Nearest to b" in title(test, "piece_neighbours")
    test = choose(inside("pieces", model="zh-en"), embeddings_panel.TYPED, "學校")
    assert "学校" in title(test, "piece_neighbours")


# ---------------------------------------------------------------- speed-ups


def test_blocks_fill_with_the_step(inside):
    test, held = inside("fast", src="abcdef", block=2), []
    for number in (1, 2, 3, 4):
        go_to(test, number)
        cells = z_of(test, "cache_blocks")
        assert ((cells > 0).sum(), (cells == 2).sum()) == (number, 1)
        held.append(len(cells))
        filled, _ = figure(test, "cache_places")["data"]
        assert numbers(filled["x"]).tolist() == [number, number]
    assert held == [1, 1, 2, 2]


def test_models_of_one_stack_have_what_they_can_have(open_one_stack):
    tiles, cache = {"tile_scores", "tile_output"}, {"cache_blocks", "cache_places"}
    assert charts_of(open_one_stack("decoder", INSIDE, inside="fast")) >= tiles | cache
    test = open_one_stack("encoder", INSIDE, inside="fast")
    assert charts_of(test) & (tiles | cache) == tiles
    assert "keeps no KV cache" in told(test)
    assert "int8" not in told(test)


def test_what_is_measured_is_measured_once_for_all_and_only_when_asked(inside, monkeypatch):
    begun = []

    def measuring(config):
        begun.append(config)
        yield from ()
        return Gains(2.0, None, 1.0, 1.6, compile_seconds=30.0)

    measurement_jobs.studies.clear()
    monkeypatch.setattr(fast.speed_gains, "measuring", measuring)
    test = inside("fast", src="abcdef")
    assert begun == []
    assert f"{fast.GAINS}_table" not in keys_of(test)
    press(test, f"{fast.GAINS}_begin")
    for job in measurement_jobs.studies()._kept.values():
        job.over.wait(10)
    check(test.run())
    assert test.dataframe[0].value["Times as fast"].tolist() == [1.0, 2.0, 1.25]
    assert "Compiling took 30 s, which pays off after about 75,000 tokens." in told(test)
    assert "about 75,000 tokens" in told(inside("fast", src="abcdef"))  # another visitor has it, too
    assert len(begun) == 1
    measurement_jobs.studies.clear()
