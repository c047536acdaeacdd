"""The wiring that explains pairs is named, two at once as well; what none explains has no name.

A healthy model is given as if its training had made a mistake: its parameters are put where such code would have put
them, its settings or its pairs are changed, so that it knows its pairs only if a run makes the mistake.
"""

import random
from dataclasses import replace

import pytest
import torch

from glassformer.extensions.wirings.catalogue import AS_IT_IS, Variant, catalogue, in_a_batch, texts, variants
from glassformer.extensions.wirings.readings import RIGHT, PairIds, Reading, batches
from glassformer.extensions.wirings.search import WiringSearch, matching
from tests.extensions.doctor.library.changed import changed
from tests.extensions.doctor.library.planted import told
from tests.healthy import healthy
from tests.healthy import texts as texts_of
from tests.transformer.featured import FEATURED, featured
from transformer.analysis.losses import text_ids

MAPS = ("q_proj", "k_proj", "v_proj")


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def pairs_of(name, n=24):
    one, given = healthy(name), texts_of(name)
    sides = zip(given.sources[:n], given.targets[:n] or [""] * n, strict=True)
    return [
        PairIds(
            text_ids(source, one.src_tokenizer, one.config.normalisation),
            text_ids(target, one.tgt_tokenizer) if target else (),
        )
        for source, target in sides
    ]


def search(checkpoint, pairs, **options):
    return WiringSearch(checkpoint, pairs, **options).run()


def each_attention(change):
    """A change of W_Q, W_K and W_V, and of their biases, in every attention."""

    def plant(model):
        for kind in model.anatomy.kinds:
            for one in model.attentions(kind):
                for name in ("weight", "bias"):
                    own = [getattr(getattr(one, each), name) for each in MAPS]
                    if own[0] is not None:
                        for tensor, value in zip(own, change([t.clone() for t in own], one), strict=True):
                            tensor.copy_(value)

    return plant


def by_dimension(own, one):
    return [t.reshape(one.n_heads, one.d_head, *t.shape[1:]).transpose(0, 1).reshape(t.shape) for t in own]


def interleaved(own, one):
    """What a fused matrix [H, 3, d] holds, cut as [3, H, d]."""
    heads = [t.reshape(one.n_heads, one.d_head, *t.shape[1:]) for t in own]
    whole = torch.stack(heads, 1).flatten(0, 2)
    return list(whole.chunk(3))


def halves(model):
    for stack in model.anatomy.stacks:
        table = model.stack(stack.name).embedding.positions.table
        table.copy_(torch.cat((table[:, 0::2], table[:, 1::2]), -1))


def gates(model):
    for layer in model.decoder.layers:
        gate, up = layer.ffn.gate_proj.weight.clone(), layer.ffn.up_proj.weight.clone()
        layer.ffn.gate_proj.weight.copy_(up)
        layer.ffn.up_proj.weight.copy_(gate)


@pytest.mark.parametrize(
    ("base", "plant", "name"),
    [
        ("gpt2", each_attention(by_dimension), "heads-by-dimension"),
        ("s4", each_attention(interleaved), "qkv-interleaved"),
        ("gpt2", each_attention(lambda own, one: [own[2], own[1], own[0]]), "qkv-order"),
        ("reverse", halves, "positions-halves"),
        ("llama", gates, "gate-exchanged"),
    ],
)
def test_parameters_that_such_code_would_have_learned_are_explained_by_it(base, plant, name):
    found = search(changed(healthy(base), plant), pairs_of(base))
    assert found.verdict == "another"
    assert name in {one.names[0] for one in (found.best, *found.equal)}
    assert len(found.best.names) == 1
    assert found.best.loss.mean < 0.1 * found.standing.loss.mean


READ = {
    "source-reversed": lambda pair: replace(pair, source=pair.source[::-1]),
    "sides-exchanged": lambda pair: PairIds(pair.target, pair.source),
    "tokenizers-exchanged": lambda pair: PairIds(
        other_ids(pair.source), other_ids(pair.target), (pair.source, pair.target)
    ),
}


def other_ids(ids):
    """Those that another tokenizer gives to the same text."""
    return tuple(4 + 5 * i % 7 for i in ids)


@pytest.mark.parametrize("name", READ)
def test_pairs_that_are_read_otherwise_are_explained(name):
    base = "torch"
    found = search(healthy(base), [READ[name](pair) for pair in pairs_of(base)])
    assert (found.verdict, found.best.names) == ("another", (name,))


def test_two_mistakes_at_once_are_found():
    one = told(n_heads=2)(told(norm="pre")(healthy("s4")))
    found = search(one, pairs_of("s4"), seconds=120)
    assert found.verdict == "another"
    assert set(found.best.names) == {"norm-place", "heads-number"}


def test_what_no_wiring_explains_has_no_name():
    draw = random.Random(0)
    pairs = [replace(pair, target=tuple(draw.sample(range(4, 12), 5))) for pair in pairs_of("s4")]
    found = search(healthy("s4"), pairs, seconds=3.0)
    assert found.verdict == "unexplained"
    assert found.best.loss.mean > 0.25 * found.chance


def test_a_model_that_is_only_less_sure_is_as_it_was_trained():
    def flat(model):
        model.decoder.final_norm.weight.mul_(0.3)

    found = search(changed(healthy("reverse"), flat), pairs_of("reverse"))
    assert found.standing.plain.mean > 3 * found.standing.loss.mean
    assert found.verdict == "as_it_stands"


def test_a_model_that_is_slow_is_searched_for_so_long_and_that_is_said(monkeypatch):
    monkeypatch.setattr("glassformer.extensions.wirings.search.MOST_SECONDS", -1.0)
    found = search(healthy("s4"), pairs_of("s4"))
    assert (found.verdict, found.n_tried, found.whole) == ("as_it_stands", 1, False)


def test_few_pairs_say_nothing():
    assert search(healthy("s4"), pairs_of("s4")[:2]).verdict == "untested"


@pytest.mark.parametrize("kind", FEATURED)
def test_every_wiring_can_be_made_in_every_kind_of_model_or_is_left_out(kind, tmp_path):
    checkpoint = featured(kind, tmp_path)
    draw = random.Random(0)
    some = [PairIds(tuple(draw.choices(range(4, 9), k=3)), tuple(draw.choices(range(4, 9), k=2))) for _ in range(3)]
    one = WiringSearch(checkpoint, some)
    every = [each for single in catalogue(checkpoint.config) for each in (single, *in_a_batch(single))]
    if not checkpoint.model.anatomy.writes:
        return
    assert one.tried(AS_IT_IS, 3) is not None
    computed = [each for each in every if one.tried(each, 3) is not None]
    assert len({each.names[0] for each in computed}) >= 30
    assert all(each.told for each in computed if each.changes)


def test_a_batch_is_read_as_trainings_read_it():
    config = healthy("s4").config
    (batch,) = batches(config, [PairIds((5, 6), (7, 8)), PairIds((5,), (9,))])
    by_place = dict(zip(batch.places, zip(batch.read.tolist(), batch.wanted.tolist(), strict=True), strict=True))
    start, end, pad = config.decoder_start_id, config.eos_id, config.pad_id
    assert by_place == {0: ([start, 7, 8], [7, 8, end]), 1: ([start, 9, end], [9, end, pad])}
    assert batch.counts.sum(1).tolist() == [len(batch.wanted[i][batch.wanted[i] != pad]) for i in range(2)]
    (cut,) = batches(config, [PairIds((5, 6), (7, 8)), PairIds((5,), (9,))], Reading(cut=True))
    assert [start, 9, pad] in cut.read.tolist()
    (twice,) = batches(config, [PairIds((5, 6), (7, 8))], Reading(shift=2))
    assert (twice.read.tolist(), twice.wanted.tolist()) == ([[start, 7]], [[8, end]])
    (wide,) = batches(config, [PairIds((5, 6), (7, 8))], Reading(width=2.0))
    assert wide.read.size(1) == 6
    assert Reading() == RIGHT


def test_logits_of_a_code_name_its_wiring():
    checkpoint = healthy("torch")
    source, read = torch.tensor([[5, 6, 7, 2], [6, 8, 2, 0]]), torch.tensor([[1, 5, 6], [1, 7, 0]])
    (planted,) = variants("residual-after-norm", checkpoint.config)[:1]
    model, tap = WiringSearch(checkpoint, ()).wired(planted)
    theirs = model(source, read, tap=tap())
    found, nearest = matching(checkpoint, source, read, lambda logits: float((logits - theirs).abs().max()), 1e-4)
    assert [one.names for one in found] == [("residual-after-norm",)]
    assert nearest < 1e-4


def test_each_text_names_a_wiring_and_wirings_that_there_are():
    said = texts()
    assert all(set(one.alike) <= set(said) for one in said.values())
    assert Variant(("no-norm",)).and_(Variant(("no-norm",))) is None
