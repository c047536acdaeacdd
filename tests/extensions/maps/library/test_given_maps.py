"""Maps of any program are taken with their labels and masks, or refused in a sentence that names the place."""

import numpy as np
import pytest
import torch

from glassformer.extensions.maps.library import given_maps as checked
from tests.extensions.maps.library.made_up import SOURCE, TARGET, all_three, weights
from transformer import GivenMaps, given_maps, load_maps, save_maps
from transformer.errors import MapsError, QueryError


def test_given_maps_are_what_was_given():
    maps = all_three()
    assert maps.kinds == ("encoder", "decoder", "cross")
    np.testing.assert_array_equal(maps.maps("cross"), weights(2, 2, 4, 5, seed=2))
    assert (maps.of("cross").queries, maps.of("cross").keys) == (TARGET, SOURCE)
    assert maps.of("encoder").queries == maps.of("encoder").keys == SOURCE
    assert not maps.maps("encoder").flags.writeable


def test_attributions_may_be_any_finite_numbers(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(1, 2, 4, 5)).astype(np.float32) * 9
    with pytest.raises(MapsError, match="set `signed=True` for attributions"):
        given_maps(cross=numbers, source=SOURCE, target=TARGET)
    maps = given_maps(cross=numbers, source=SOURCE, target=TARGET, signed=True)
    assert (maps.of("cross").signed, maps.of("cross").sums_to_one) == (True, False)
    save_maps(maps, tmp_path / "x.npz")
    again = load_maps(tmp_path / "x.npz")
    assert again.of("cross").signed
    assert again.content_hash == maps.content_hash
    numbers[0, 1, 2, 3] = np.nan
    with pytest.raises(MapsError, match="layer 1, head 2, row 3, column 4 is nan; attributions must be finite"):
        given_maps(cross=numbers, source=SOURCE, target=TARGET, signed=True)
    closed = np.ones((4, 5), bool)
    closed[2, 3] = False
    with pytest.raises(MapsError, match="the mask does not allow"):
        given_maps(cross=-np.ones((1, 1, 4, 5)), source=SOURCE, target=TARGET, signed=True, allowed={"cross": closed})


def test_any_kinds_will_do_but_one_there_must_be():
    for kind, queries, keys in (("encoder", 5, 5), ("decoder", 4, 4), ("cross", 4, 5)):
        maps = given_maps(**{kind: weights(1, 1, queries, keys)}, source=SOURCE, target=TARGET)
        assert maps.kinds == (kind,)
        with pytest.raises(QueryError, match=f"only these kinds: {kind}"):
            maps.maps(next(other for other in checked.KINDS if other != kind))
    one = all_three().of("encoder")
    with pytest.raises(MapsError, match="found encoder, encoder; give one or more of"):
        GivenMaps((one, one))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_lists_of_batched_layers_are_stacked_as_transformers_gives_them(dtype):
    whole = torch.from_numpy(weights(3, 2, 5, 5)).to(dtype).requires_grad_()
    output = tuple(torch.stack([torch.zeros_like(layer), layer]) for layer in whole)
    maps = given_maps(encoder=output, source=SOURCE, row=1)
    np.testing.assert_array_equal(maps.maps("encoder"), whole.detach().float().numpy())
    plain = given_maps(encoder=list(whole.detach().float().numpy()), source=SOURCE)
    np.testing.assert_array_equal(maps.maps("encoder"), plain.maps("encoder"))


def test_tokens_to_skip_leave_with_their_rows_and_columns():
    part = weights(2, 2, 5, 5)
    padded = np.zeros((2, 2, 7, 7), np.float32)
    padded[:, :, :5, :5] = part
    padded[:, :, 5:] = 1 / 7  # what a library makes of rows that may see nothing
    tokens = [*SOURCE, "[PAD]", "[PAD]"]
    maps = given_maps(encoder=list(padded), source=tokens, skip=["[PAD]"], allowed={"encoder": np.ones((7, 7), bool)})
    np.testing.assert_array_equal(maps.maps("encoder"), part)
    assert maps.of("encoder").keys == SOURCE


def test_a_decoder_without_weight_on_what_comes_later_is_causal_and_other_cells_are_open():
    assert (all_three().mask("decoder") == np.tril(np.ones((4, 4), bool))).all()
    looks_ahead = given_maps(decoder=weights(1, 1, 4, 4), target=TARGET)
    assert looks_ahead.mask("decoder").all()
    zeros = given_maps(encoder=weights(1, 1, 5, 5, causal=True), source=SOURCE)
    assert zeros.mask("encoder").all()
    apart = given_maps(decoder=weights(1, 1, 2, 6), labels={"decoder": (["a", "b"], list("uvwxyz"))})
    assert apart.of("decoder").keys == tuple("uvwxyz")
    assert apart.mask("decoder").all()


def test_a_mask_is_kept_and_has_to_fit_the_weights_and_rows_of_another_sum_have_to_be_announced():
    allowed, causal = np.tril(np.ones((5, 5), bool)), weights(1, 1, 5, 5, causal=True)
    maps = given_maps(encoder=causal, source=SOURCE, allowed={"encoder": allowed})
    assert (maps.mask("encoder") == allowed).all()
    half = weights(2, 3, 5, 5)
    half[1, 2, 3] /= 2
    for encoder, mask, said in (
        (causal, ~allowed, "is your mask inverted"),
        (causal, allowed.astype(float), r"expected bool of shape \(5, 5\)"),
        (causal, allowed[:4], r"expected bool of shape \(5, 5\)"),
        (half, allowed | True, r"layer 2, head 3, row 4 sum to 0\.5.*sums_to_one=False"),
    ):
        with pytest.raises(MapsError, match=said):
            given_maps(encoder=encoder, source=SOURCE, allowed={"encoder": mask})
    assert not given_maps(encoder=half, source=SOURCE, sums_to_one=False).of("encoder").sums_to_one


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"encoder": weights(1, 1, 5, 5)[0]}, r"\(1, 5, 5\); expected four axes"),
        ({"encoder": [None]}, 'attn_implementation="eager"'),
        ({"encoder": [[torch.ones(1, 1, 1, 5)]]}, "as `generate` returns it"),
        ({"encoder": [weights(1, 1, 5, 5)], "row": 1}, "rows 0 to 0"),
        ({"encoder": [weights(1, 1, 5, 5), weights(1, 2, 5, 5)]}, "layer 2 has the shape"),
        ({"encoder": "weights"}, "an array of numbers"),
        ({"encoder": np.zeros((1, 0, 5, 5))}, r"\(1, 0, 5, 5\); expected 1 to 200 layers, 1 to"),
        ({"encoder": np.zeros((checked.MOST_LAYERS + 1, 1, 1, 1)), "source": ["a"]}, "expected 1 to 200 layers"),
        ({"encoder": weights(1, 1, 5, 5), "source": SOURCE[:4]}, "found 4 labels, but the weights need 5"),
        ({"encoder": weights(1, 1, 5, 5), "source": "abcde"}, "give a list of labels"),
        ({"encoder": weights(1, 1, 5, 5), "source": [*"abcd", "e" * 201]}, "201 characters; the limit is 200"),
        ({"encoder": weights(1, 1, 5, 5), "source": [*"abcd", "\ud800"]}, "half of a surrogate pair"),
        ({"cross": weights(1, 1, 4, 5)}, r"cross: there are no labels; give the tokens as target=\[…\]"),
        ({}, "one or more of encoder, decoder, cross"),
        ({"encoder": weights(1, 1, 5, 5), "sentence": "a" * 4001}, "sentence: the text has 4,001 characters"),
        ({"encoder": weights(1, 1, 5, 5), "special": ["a"] * 257}, "special: found 257 labels"),
    ],
)
def test_what_does_not_fit_is_said_with_its_limit_or_remedy(given, said):
    with pytest.raises(MapsError, match=said):
        given_maps(**{"source": SOURCE, **given})


@pytest.mark.parametrize(
    ("value", "most", "said"),
    [
        (np.nan, 50, "layer 1, head 2, row 3, column 4 is nan"),
        (1.5, 50, "is 1.5, not a number from 0 to 1"),
        (None, 49, "50 weights in all; at most 49"),
    ],
)
def test_what_is_no_weight_is_named_with_its_place_and_too_many_are_refused(value, most, said, monkeypatch):
    monkeypatch.setattr(checked, "MOST_CELLS", most)
    wrong = weights(1, 2, 5, 5)
    if value is not None:
        wrong[0, 1, 2, 3] = value
    with pytest.raises(MapsError, match=said):
        given_maps(encoder=wrong, source=SOURCE)


def test_the_content_hash_tells_maps_apart():
    changes = {"checkpoint": "other", "source": [*"abcde"], "encoder": weights(3, 4, 5, 5, seed=9)}
    others = [all_three(**{name: value}).content_hash for name, value in changes.items()]
    assert len({all_three().content_hash, *others}) == 4
    assert all_three().content_hash == all_three().content_hash
