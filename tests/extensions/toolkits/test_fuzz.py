"""Whatever becomes of an option, a tensor or a byte, a toolkit's file opens, or one sentence says why not."""

import argparse

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.extensions.importers.library import opening
from tests.extensions.toolkits import test_fairseq, test_joeynmt, test_marian, test_opennmt
from transformer.errors import CheckpointError

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2**40), st.floats(allow_nan=False), st.text(max_size=5),
    st.just([]), st.just([1, "a"]), st.just({"a": {"b": 1}}), st.just([[1]]),
)  # fmt: skip
SETTINGS = settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def understood(path):
    """Open it or see one sentence."""
    try:
        opening.load(path)
    except CheckpointError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < 2000
        assert path.parent.name in text


def with_options(values, draw):
    """Options with one that is another."""
    key = draw(st.sampled_from(sorted(values)))
    return values | {key: draw(ODD)}


def in_a_pickle(module, name, **more):
    def change(folder, draw):
        path, _ = module.saved(folder, **more)
        content = torch.load(path, weights_only=False)
        content[name] = argparse.Namespace(**with_options(vars(content[name]), draw))
        torch.save(content, path)
        return path

    return change


def of_marian(folder, draw):
    path, _ = test_marian.saved(folder)
    test_marian.replaced(path, yaml.safe_dump(with_options(test_marian.OPTIONS, draw)))
    return path


def of_joey(folder, draw):
    path, _ = test_joeynmt.saved(folder)
    model = test_joeynmt.changed()
    place = draw(st.sampled_from([model, model["encoder"], model["decoder"], model["encoder"]["embeddings"]]))
    place |= with_options(place, draw)
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))
    return path


CHANGES = {
    "fairseq": in_a_pickle(test_fairseq, "args"),
    "opennmt": in_a_pickle(test_opennmt, "opt", version=3),
    "marian": of_marian,
    "joeynmt": of_joey,
}


@pytest.mark.parametrize("kind", CHANGES)
@SETTINGS
@given(data=st.data())
def test_options(tmp_path, kind, data):
    understood(CHANGES[kind](tmp_path / "model", data.draw))


@SETTINGS
@given(data=st.data())
def test_tensors_in_a_pickle(tmp_path, data):
    path, _ = test_fairseq.saved(tmp_path / "model")
    content = torch.load(path, weights_only=False)
    state = content["model"]
    name = data.draw(st.sampled_from(sorted(state)))
    how = data.draw(st.sampled_from(["gone", "short", "flat", "integers", "more", "other name"]))
    value = state.pop(name)
    if how == "other name":
        state[f"{name}s"] = value
    elif how != "gone":
        state[name] = {
            "short": value[:-1], "flat": value.flatten(), "integers": value.long(), "more": value[None],
        }[how]  # fmt: skip
    torch.save(content, path)
    understood(path)


@SETTINGS
@given(data=st.data())
def test_bytes_of_an_archive_of_arrays(tmp_path, data):
    path, _ = test_marian.saved(tmp_path / "model")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    understood(path)
