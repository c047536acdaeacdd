"""Given maps have words, rollouts and heads where their labels and sizes allow it."""

from glassformer.runs.map_axes import fit_given
from glassformer.runs.viewed_run import can_roll, has_words, marked
from glassformer.state.view import View
from tests.extensions.maps.library.made_up import SOURCE, TARGET, all_three, weights
from transformer import given_maps


def test_words_begin_where_the_labels_own_mark_says():
    subwords = ["▁the", "▁cat", "s"]
    for labels, expected in (
        (["The", "Ġcat", "s"], ["The", "▁cat", "s"]),
        (["the", "cat", "##s"], subwords),
        (subwords, subwords),
        (["the", "cats"], ["the", "cats"]),
        ([], []),
    ):
        assert marked(labels) == expected
    assert has_words(all_three())
    assert not has_words(given_maps(encoder=weights(1, 1, 3, 3), source=["the", "cats", "sat"]))


def test_a_rollout_needs_the_same_tokens_on_both_sides_and_rows_that_sum_to_one():
    assert all(can_roll(all_three(), kind) for kind in ("encoder", "decoder", "cross"))
    cut = all_three(labels={"decoder": (TARGET, ["x", *TARGET[1:]])})
    assert not can_roll(cut, "decoder")
    assert not can_roll(cut, "cross")
    assert can_roll(cut, "encoder")
    alone = given_maps(cross=weights(2, 2, 4, 5), source=SOURCE, target=TARGET)
    assert not can_roll(alone, "cross")
    assert not can_roll(all_three(cross=weights(3, 2, 4, 5)), "cross")  # of more layers than the decoder
    assert not can_roll(all_three(sums_to_one=False), "encoder")


def test_the_view_moves_into_what_there_is_and_says_so():
    maps = given_maps(encoder=weights(2, 3, 5, 5), source=SOURCE)
    view, notes = fit_given(View(), maps)
    assert (view.kind, notes) == ("encoder", ())  # nobody asked for the default
    view, notes = fit_given(View(kind="decoder", layer=1, head=3, hide_special=True), maps)
    assert (view.kind, view.layer, view.head, view.hide_special) == ("encoder", 1, None, False)
    assert len(notes) == 2
