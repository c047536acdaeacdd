"""No kind of model has a mistake in its masks by itself, and a mistake is named by what is wrong in it."""

import pytest
import torch

from tests.extensions.doctor.library.changed import changed, found
from tests.extensions.tokenizers.filling import filling
from tests.transformer.featured import FEATURED, featured
from tests.transformer.one_stack import alone
from transformer.model.masks import combine_masks, padding_mask

TESTS = ("causality", "own_token", "padding_source", "padding_target", "batch", "cache")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return alone("decoder", tmp_path_factory.mktemp("decoder"))


@pytest.mark.parametrize("kind", ["decoder", "encoder", "filling", *FEATURED])
def test_no_kind_of_model_has_a_mistake_by_itself(kind, tmp_path):
    if kind == "filling":
        checkpoint = filling(tmp_path)
    else:
        checkpoint = alone(kind, tmp_path) if kind in ("decoder", "encoder") else featured(kind, tmp_path)
    verdicts = {name: found(checkpoint, name) for name in TESTS}
    assert {one.verdict for one in verdicts.values()} <= {"well", "not_applicable"}, verdicts
    assert verdicts["batch"].verdict == "well"
    positions = found(checkpoint, "positions").verdict
    assert positions == ("look" if checkpoint.config.placing.adds == "nothing" else "well")
    writes = checkpoint.model.anatomy.writes
    assert all((verdicts[name].verdict == "well") == writes for name in ("causality", "own_token", "cache"))


def masked(mask):
    """A change: the decoder's mask is another function of [T] ids and n past tokens."""

    def change(model):
        pad = model.config.pad_id

        def target_mask(ids, *, n_past=0, tap=None):
            made = mask(ids.size(1), n_past)
            if n_past:
                return made
            padding = padding_mask(ids, pad_id=pad)
            padding[..., :1] = True
            return combine_masks(made, padding)

        model.target_mask = target_mask

    return change


def ahead(n, n_past, by):
    query, key = torch.arange(n)[:, None] + n_past, torch.arange(n + n_past)
    return (key <= query + by)[None, None]


@pytest.mark.parametrize(
    ("by", "test", "says"),
    [
        (100, "causality", "The causal mask is missing"),
        (1, "causality", "Each layer looks one token ahead"),
        (-1, "own_token", "shifted by one and therefore too strict"),
    ],
)
def test_a_wrong_causal_mask_of_a_decoder_alone_is_named(by, test, says, decoder):
    finding = found(changed(decoder, masked(lambda n, past: ahead(n, past, by))), test)
    assert finding.verdict == "broken"
    assert says in finding.measured.causes


def test_how_far_it_looks_ahead_is_measured(reverse):
    measured = found(changed(reverse, masked(lambda n, past: ahead(n, past, 1))), "causality").measured
    assert "up to 2 tokens before it" in measured.said  # one a layer
    assert measured.number > 1


def test_padding_that_the_encoder_hides_and_the_cross_attention_does_not_is_found(reverse):
    def cross_open(model):
        decode = model.decode
        model.decode = lambda ids, memory=None, mask=None, **rest: decode(
            ids, memory, None if mask is None else torch.ones_like(mask), **rest
        )

    spoilt = changed(reverse, cross_open)
    broken = {name for name in TESTS if found(spoilt, name).verdict == "broken"}
    assert broken == {"padding_source", "batch"}


def test_sentences_that_change_each_other_are_found(reverse):
    def averaging(model):
        encode = model.encode
        model.encode = lambda ids, *rest, **more: (
            encode(ids, *rest, **more) * 0.9 + 0.1 * encode(ids, *rest, **more).mean(0, keepdim=True)
        )

    finding = found(changed(reverse, averaging), "batch")
    assert finding.verdict == "broken"
    assert finding.measured.number > 100 * finding.measured.threshold
