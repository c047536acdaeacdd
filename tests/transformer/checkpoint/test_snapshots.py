"""A snapshot is the checkpoint as it was then, and readers never see half of one."""

import json
import lzma
import multiprocessing
import os
import shutil
import sys
from contextlib import suppress

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from safetensors.torch import load as from_safetensors
from safetensors.torch import save as to_safetensors

import transformer
from transformer.checkpoint import snapshots
from transformer.checkpoint.listing import listing
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import SnapshotInfo, folder_of, moments, split, write
from transformer.errors import CheckpointError

STEPS = (0, 10, 219, 1200)


def grow(folder):
    """Give a checkpoint four snapshots, each of other parameters."""
    state = load(folder).model.state_dict()
    for i, step in enumerate(STEPS):
        values = {name: value + 0.25 * i for name, value in state.items()}
        write(folder, values, SnapshotInfo(step=step, epoch=i, loss=4.0 - i, dev_loss=float("nan")))
    return folder


@pytest.fixture
def grown(spoil):
    return grow(spoil())


@pytest.fixture(scope="session")
def session_grown(checkpoint_folder, tmp_path_factory):
    """The same for many examples, which put a file's bytes back themselves."""
    folder = grow(shutil.copytree(checkpoint_folder, tmp_path_factory.mktemp("grown") / "spoilt"))
    return folder, file_of(folder).read_bytes(), load(folder.with_name("spoilt@219"))


def file_of(folder, step=219):
    return folder_of(folder) / f"{step}{snapshots.FILE}"


def refused(folder, name="spoilt@219", **options):
    with pytest.raises(CheckpointError) as caught:
        load(folder.with_name(name), **options)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


def test_a_snapshot_is_the_checkpoint_with_the_parameters_of_that_time(grown):
    own, then = load(grown), transformer.load(f"{grown}@219")
    assert (then.name, then.folder, then.card, then.config) == ("spoilt@219", grown, own.card, own.config)
    assert then.warnings == ()
    for name, value in then.model.state_dict().items():
        assert torch.equal(value, (own.model.state_dict()[name] + 0.5).bfloat16().float()), name
    assert then.run("ba lo mi").query.checkpoint == then.content_hash
    hashes = {load(grown.with_name(f"spoilt@{step}")).content_hash for step in STEPS} | {own.content_hash}
    assert len(hashes) == 1 + len(STEPS)
    write(grown, then.model.state_dict(), SnapshotInfo(step=219, seconds=99.0))
    assert load(grown.with_name("spoilt@219")) == then  # whatever time it took
    (grown / "config.json").write_bytes((grown / "config.json").read_bytes() + b"\n")
    assert load(grown.with_name("spoilt@219")) != then
    os.rename(grown, grown.with_name("spoilt@219"))  # a folder of that very name comes first
    assert load(grown.with_name("spoilt@219")).folder == grown.with_name("spoilt@219")


def test_moments_are_in_order_and_odd_ones_are_left_out_with_a_note(grown):
    found, odd = moments(grown)
    assert [moment.step for moment in found] == list(STEPS)
    assert found[2] == SnapshotInfo(step=219, epoch=2, loss=2.0)  # what is not a number is not known
    assert odd == ()
    file_of(grown).write_bytes(file_of(grown, 10).read_bytes())
    file_of(grown, 10).write_bytes(b"nothing")
    (folder_of(grown) / "7.safetensors.partial").write_bytes(b"of a write that was killed")
    record = {"snapshot": json.dumps({"step": 1200, "epoch": 1.5})}
    file_of(grown, 1200).write_bytes(lzma.compress(to_safetensors({"a": torch.zeros(1)}, metadata=record)))
    found, odd = moments(grown)
    assert [moment.step for moment in found] == [0]
    assert [str(note).partition(": ")[2] for note in odd] == [
        "is not a snapshot of step 10.",
        "is not a snapshot of step 219.",
        "has an invalid epoch: 1.5.",
    ]
    assert moments(grown.with_name("other")) == ((), ())
    assert [entry.name for entry in listing([grown.parent])] == ["spoilt"]  # they are no checkpoints


def test_a_step_that_is_not_there_a_bomb_and_what_does_not_fit_the_config_are_refused(grown):
    nearest = "'spoilt@220': there is no snapshot of that step; the nearest are @0, @10, @219."
    assert refused(grown, "spoilt@220") == nearest
    state = from_safetensors(lzma.decompress(file_of(grown).read_bytes()))
    for name, value in {"src_table": state["src_table"][1:], "encoder.final_norm.bias": torch.zeros(3)}.items():
        file_of(grown).write_bytes(lzma.compress(to_safetensors({**state, name: value})))
        text, label = refused(grown), "spoilt.snapshots/219.safetensors.xz: "
        assert text.startswith(("spoilt@219: ", label, f"{grown.parent}/{label}"))
        assert name in text
    bomb = lzma.compress(bytes(3 * 10**7), preset=0)
    assert len(bomb) < 100_000
    file_of(grown).write_bytes(bomb)
    assert "is damaged, or longer than its config allows" in refused(grown)
    assert len(moments(grown)[1]) == 1
    shutil.rmtree(folder_of(grown))
    assert refused(grown) == "'spoilt@219': 'spoilt' has no snapshots."


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such links")
def test_no_link_leaves_the_folder_of_checkpoints(grown, tmp_path_factory):
    outside, inside = tmp_path_factory.mktemp("outside") / "there", grown.parent.resolve()
    os.rename(file_of(grown), outside.with_name("219"))
    file_of(grown).symlink_to(outside.with_name("219"))
    assert "link that points outside" in refused(grown, inside=inside)
    os.rename(folder_of(grown), outside)
    folder_of(grown).symlink_to(outside)
    assert "outside the folder of checkpoints" in refused(grown, "spoilt@10", inside=inside)
    assert moments(grown, inside=inside)[0] == ()
    assert load(grown.with_name("spoilt@10")).name == "spoilt@10"  # who sets no limit may follow


@given(some.data())
@settings(max_examples=30)
def test_a_damaged_file_is_refused_or_the_same(session_grown, data):
    folder, original, expected = session_grown
    place, other = data.draw(some.integers(0, len(original) - 1)), data.draw(some.integers(1, 255))
    before, after = original[:place], original[place + 1 :]
    flipped = before + bytes([original[place] ^ other]) + after
    changed = [flipped, before, original + data.draw(some.binary(min_size=1, max_size=20)), before + after]
    file_of(folder).write_bytes(data.draw(some.sampled_from(changed)))
    found, odd = moments(folder)
    assert len(found) + len(odd) == len(STEPS)
    with suppress(CheckpointError):
        assert load(folder.with_name("spoilt@219")) == expected


@settings(max_examples=25)
@given(some.text(max_size=20) | some.from_regex(r"spoilt@[0-9@.]{0,20}", fullmatch=True))
def test_any_name_is_opened_or_refused(session_grown, name):
    folder, original, _ = session_grown
    file_of(folder).write_bytes(original)
    named = split(name)
    assert named is None or f"{named[0]}@{named[1]}" == name
    try:
        assert load(f"{folder.parent}/{name}").name in {name, "spoilt"}
    except CheckpointError:
        assert named is None or named[0] != "spoilt" or named[1] not in STEPS


def read_again_and_again(folder):
    for _ in range(12):
        found, odd = moments(folder)
        assert not odd, odd
        newest = f"{folder.name}@{found[-1].step}"
        assert load(folder.with_name(newest)).name == newest


def test_a_process_reads_while_another_writes(grown):
    state, step = load(grown).model.state_dict(), 1200
    reader = multiprocessing.get_context("fork").Process(target=read_again_and_again, args=(grown,))
    reader.start()
    while reader.is_alive():
        step += 1
        write(grown, state, SnapshotInfo(step=step % 40 + 1200, seconds=float(step)))
    assert reader.exitcode == 0
