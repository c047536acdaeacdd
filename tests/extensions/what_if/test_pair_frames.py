"""Frames of two runs are what the server draws at each step of the longer one; a click branches off there."""

import json
from dataclasses import replace

import pytest

from glassformer.extensions.what_if import pair_pictures
from glassformer.extensions.what_if.comparison import pair_of
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.runs.step_frames import Frames
from glassformer.runs.viewed_run import at_step, n_steps_of, step_of
from glassformer.state.link import Link
from glassformer.state.view import MAIN, SECOND, Click, View
from tests.glassformer.runs.test_step_frames import OF, changed, drawn, fetched
from transformer.checkpoint.load import load
from transformer.runs.interventions import parse

LINKS = {
    "changed": {"interventions": parse("zero-cross.2.1")},
    "a longer sentence": {"beside": "src=abcdefgh"},
    "a shorter sentence": {"beside": "src=ab"},
    "a branch": {"beside": "forced=7"},
}


def paired(step=0, **fields):
    """The pair that a link of the reversed letters names."""
    checkpoint = load(loading.SHIPPED / "reverse")
    link = Link(model="reverse", source="abcde", view=View(step=step), **fields)
    trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    return pair_of(seen(checkpoint, link, trace)[0])


@pytest.mark.parametrize("picture", [pair_pictures.left, pair_pictures.right], ids=lambda one: one.key)
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_frames_of_two_runs_are_what_the_server_draws_at_each_step(picture, link):
    pair, frames = paired(**link), Frames()
    found = fetched(frames, frames.offer(picture, pair, OF, drawn(picture, pair, slot=pair.slot)))
    assert len(found["changes"]) == n_steps_of(pair) == max(run.trace.n_steps for run in pair.runs)
    moments = []
    for step, made in enumerate(found["changes"]):
        there = at_step(pair, step)
        assert step_of(there) == step
        assert [run.view.step for run in there.runs] == [min(step, run.trace.n_steps - 1) for run in pair.runs]
        moments.append(drawn(picture, there, slot=pair.slot))
        assert changed(found["first"], made) == moments[-1] | {"figure": json.loads(moments[-1]["figure"])}
    assert moments[0] != moments[1]


def test_a_pair_has_a_name_of_its_own_one_checkpoint_and_the_slot_of_the_longer_run():
    pairs = {name: paired(**link) for name, link in LINKS.items()}
    assert len({Frames().offer(pair_pictures.left, pair, OF, {}) for pair in pairs.values()}) == len(pairs)
    changed_steps = [at_step(pairs["changed"], step) for step in (0, 2)]
    assert len({Frames().offer(pair_pictures.left, one, OF, {}) for one in changed_steps}) == 1
    assert paired(beside="model=zh-en") is None
    assert (pairs["a longer sentence"].slot, pairs["a shorter sentence"].slot) == (SECOND, MAIN)


def test_a_click_branches_off_at_the_step_that_is_seen_and_means_nothing_for_what_is_written_or_never_is():
    pair = at_step(paired(**LINKS["a branch"]), 2)
    never = next(iter(pair.left.checkpoint.config.never_written), None)
    written = pair.left.trace.tgt_ids
    clicked = pair_pictures.left.of(pair).clicked
    other = next(i for i in range(pair.left.checkpoint.config.tgt_vocab_size) if i != written[2] and i != never)
    assert clicked(Click(0, (0,), other)) == (*written[:2], other)
    assert clicked(Click(0, (0,), written[2])) is None
    assert clicked(Click(0, (0,), 10**6)) is None
    alone = replace(pair, compared="sentences")
    assert pair_pictures.left.of(alone).clicked is None
