"""Each mistake of the catalogue that can be made in a run has a card: what it shows is what plain runs come to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.effects import mistake_runs
from glassformer.extensions.effects.mistake_panels import PAGES, changed_maps, losses, map_pair, output
from glassformer.extensions.effects.mistake_runs import OLD, PADS, all_changes, became, look, of_changes, opening, shown
from glassformer.extensions.wirings.catalogue import texts, variants
from glassformer.runs import loading
from glassformer.state.view import all_fields
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse, write
from transformer.runs.query import Beam, Sampling
from transformer.runs.running import run, run_batch

WRITING = ("reverse", "addition", *(pytest.param(one, marks=pytest.mark.deep) for one in ("zh-en", "en-fr")))
SAME = "does not change the output"


class Job:
    """A job that nobody stops."""

    told = ()

    def pause(self):
        pass

    def tell(self, so_far):
        self.told = (*self.told, so_far)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def opened(name):
    checkpoint = loading.open_checkpoint(loading.usable()[name])
    return checkpoint, checkpoint.query(checkpoint.card.first_example())


def plain_runs(checkpoint, query, name, changes):
    """Both sides without a card; None where there is no output."""
    pads = (PADS,) if "padding" in name and checkpoint.config.n_encoder_layers else ()
    right = run(checkpoint, replace(query, interventions=pads))
    try:
        return right, run(checkpoint, replace(query, interventions=(*pads, *changes)))
    except QueryError:
        return right, None


@torch.inference_mode()
def plain_losses(checkpoint, trace, ids, changes):
    """The loss of each token of an output that is read at once, by the model itself."""
    read = [*trace.read_ids[: trace.first_row + 1], *ids[:-1]]
    logits = checkpoint.model(torch.tensor([trace.src_ids]), torch.tensor([read]), tap=tap_for(changes, checkpoint))
    return -logits[0, trace.first_row :].log_softmax(-1)[range(len(ids)), list(ids)].numpy()


@pytest.mark.parametrize("model", WRITING)
def test_each_card_shows_what_plain_runs_come_to(model):
    checkpoint, query = opened(model)
    job = Job()
    flags = all_changes(checkpoint, query, job)
    assert len(job.told) == len(flags) > 30
    assert 0 < flags.sum() < len(flags)
    for (name, (first, *_)), may in zip(shown(checkpoint.config).items(), flags, strict=True):
        found = look(checkpoint, first, query, checkpoint.card.reference_of(query.source))
        right, wrong = plain_runs(checkpoint, query, name, first.changes)
        assert (found.right.tgt_ids, found.wrong and found.wrong.tgt_ids) == (right.tgt_ids, wrong and wrong.tgt_ids)
        assert may == (wrong is None or wrong.tgt_ids != right.tgt_ids) == (SAME not in found.said), name
        assert "cannot be run" not in found.said, found.said
        assert checkpoint.tgt_tokenizer.decode(found.ids) == checkpoint.card.reference_of(query.source)
        for read, asked in zip(found.reads, (found.right.query, found.asked), strict=True):
            own = plain_losses(checkpoint, right, found.ids, asked.interventions)
            np.testing.assert_allclose(read.losses, own, rtol=1e-3, atol=1e-3, err_msg=name)
        assert len(losses(found).spec["data"]) == 2
        maps = changed_maps(found, checkpoint.config)
        assert sorted(maps, key=lambda one: -one.apart) == maps
        for plot in map_pair(found, maps[0]) if maps else ():
            assert plot.spec["data"]
        assert output(found.right, found.first)


def test_the_first_map_is_the_one_that_changes_most_in_the_mean():
    checkpoint, query = opened("reverse")
    one, *_ = shown(checkpoint.config)["causal-inverted"]
    found = look(checkpoint, one, query)
    best = changed_maps(found, checkpoint.config)[0]
    apart = {
        (kind.kind, layer, head): float(np.abs(after - before).mean())
        for kind in anatomy(checkpoint.config).attentions
        for layer in range(kind.n_layers)
        for head, (before, after) in enumerate(
            zip(*(read.values[kind.site(layer, "weights")] for read in found.reads), strict=True)
        )
    }
    assert (best.attention.kind, best.layer, best.head) == max(apart, key=apart.get)
    assert best.apart == pytest.approx(max(apart.values()), rel=1e-5)
    drawn = [plot.spec["data"][0]["z"] for plot in map_pair(found, best)]
    for shown_map, weights in zip(drawn, best.sides, strict=True):
        there = np.isfinite(shown_map)
        np.testing.assert_array_equal(shown_map[there], weights[there])
        assert not weights[~there].any()  # closed, and nothing else
    (heads, *_) = shown(checkpoint.config)["heads-number"]
    assert {one.head for one in changed_maps(look(checkpoint, heads, query), checkpoint.config)} == {None}


def test_a_mistake_that_gives_nan_begins_where_the_first_row_is_empty():
    checkpoint, query = opened("reverse")
    found = look(checkpoint, shown(checkpoint.config)["no-guard"][0], query)
    assert found.wrong is found.first is None
    assert "decoder.0.self_attn.weights" in found.said
    best = changed_maps(found, checkpoint.config)[0]
    assert (best.attention.kind, best.layer) == ("decoder", 0)
    assert np.isnan(best.sides[1][0]).all()
    assert np.isfinite(best.sides[1][1:]).all()


def test_maps_that_are_too_large_are_left_out(monkeypatch):
    checkpoint, query = opened("reverse")
    monkeypatch.setattr(mistake_runs, "MAP_BYTES", 0)
    found = look(checkpoint, shown(checkpoint.config)["softmax-twice"][0], query)
    assert [read.values for read in found.reads] == [{}, {}]
    assert changed_maps(found, checkpoint.config) == []


def test_a_model_that_was_trained_so_knows_the_right_output_with_the_mistake_alone():
    checkpoint, query = opened("reverse-leak")
    found = look(checkpoint, shown(checkpoint.config)["no-causal-mask"][0], query, "ssalg")
    assert found.is_reference
    assert found.reads[0].mean_loss > 1
    assert found.reads[1].mean_loss < 1e-3
    unread = look(checkpoint, shown(checkpoint.config)["no-causal-mask"][0], query, "abcdefghijklmnopqrst")
    assert (unread.is_reference, unread.ids) == (False, unread.right.tgt_ids)


@pytest.mark.parametrize(
    ("turn", "changes"),
    enumerate([
        {"decoding": Sampling(temperature=1.5, seed=3), "max_new": 3},
        {"decoding": Beam(size=2)},
        {"interventions": parse("noffn-all.1")},
    ]),
)  # fmt: skip
def test_what_changes_an_output_is_known_without_the_whole_run(turn, changes):
    """Each mistake in one kind of run, in turn."""
    checkpoint, query = opened("reverse")
    query = replace(query, **changes)
    found = zip(shown(checkpoint.config).items(), all_changes(checkpoint, query, Job()), strict=True)
    for (name, ways), may in list(found)[turn::3]:
        assert may == (SAME not in look(checkpoint, ways[0], query).said), name


def test_of_a_long_output_what_would_take_too_long_may_change(monkeypatch):
    checkpoint, query = opened("reverse")
    before = dict(zip(shown(checkpoint.config), all_changes(checkpoint, query, Job()), strict=True))
    monkeypatch.setattr(mistake_runs, "MOST_STEPS", 2)
    loading.runner.clear()
    after = dict(zip(shown(checkpoint.config), all_changes(checkpoint, query, Job()), strict=True))
    slow = {name for name, (one, *_) in shown(checkpoint.config).items() if not tap_for(one.changes, checkpoint).causal}
    assert (
        {name for name in after if after[name] != before[name]} == {name for name in slow if not before[name]} != set()
    )


def test_what_became_of_an_output_is_said():
    checkpoint, query = opened("reverse")
    right, other = run_batch(checkpoint, [query, checkpoint.query("abcdef")])
    cut = run(checkpoint, replace(query, max_new=3))
    ended = {"stop_reason": "end of sentence"}
    nothing = replace(right, tgt_ids=right.tgt_ids[-1:], tgt_tokens=right.tgt_tokens[-1:], texts=("",), **ended)
    assert SAME in became(right, right)
    assert "From token 1 on" in became(right, other)
    assert "stopped after 3 tokens" in became(right, cut)
    assert "the end mark" in became(right, nothing)


@pytest.mark.parametrize(
    ("do", "name", "way"),
    [
        ("causal-off", "no-causal-mask", "causal-off"),
        ("causal-peek", "causal-one-too-many", "causal-peek"),
        ("causal-inverted_fill-decoder.m1000000000", "causal-inverted", "causal-inverted_fill-decoder.m1000000000"),
        ("causal-hidden_unguarded-decoder", "no-guard", "causal-hidden_unguarded-decoder"),
        ("miswired-decoder.1.future", "no-causal-mask", "miswired-decoder.1.future"),
        ("miswired-encoder.1.discarded", "mask-discarded", ""),
        ("unplaced-all", "no-positions", "unplaced-all"),
        ("scale-all.off.1", "scores-not-scaled", ""),
        ("zero-cross.1.1", "", ""),
    ],
)
def test_the_page_opens_on_the_mistake_that_is_made(do, name, way):
    checkpoint, query = opened("reverse")
    found = of_changes(checkpoint.config, parse(do))
    assert (found.names[0] if found else "") == name
    assert not way or write(found.changes) == way
    if found:
        assert opening(checkpoint, replace(query, interventions=parse(do))) == found


def test_without_a_change_the_page_opens_on_the_first_mistake_that_changes_the_output(monkeypatch):
    checkpoint, query = opened("reverse")
    flags = dict(zip(shown(checkpoint.config), all_changes(checkpoint, query, Job()), strict=True))
    assert opening(checkpoint, query).names[0] == next(name for name, may in flags.items() if may)
    monkeypatch.setattr(mistake_runs, "changes", lambda *_: False)
    assert opening(checkpoint, query).names[0] == next(iter(flags))
    assert shown(opened("palindrome")[0].config) == {}
    assert opening(*opened("palindrome")) is None


def test_old_addresses_name_mistakes_that_there_are():
    config = opened("zh-en")[0].config
    assert set(OLD.values()) <= set(shown(config))
    assert not set(OLD) & set(texts())


@pytest.mark.parametrize("model", ["zh-en", "addition"])
def test_each_card_has_texts_and_leads_to_parts_that_there_are(model):
    config = opened(model)[0].config
    for name, ways in shown(config).items():
        said = texts()[name]
        assert all((said.title, said.about, said.wrong, said.right, said.source))
        assert set(said.alike) <= set(texts()) - {name}
        assert len({write(one.changes) for one in ways}) == len({one.told for one in ways}) == len(ways)
        assert all(one in variants(name, config) for one in ways)
        if said.page in PAGES:
            assert said.panel in all_fields()["panel" if said.page == "attention" else f"{said.page}_panel"].words
        else:
            assert said.page == "step"
