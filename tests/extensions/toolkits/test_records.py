"""Objects that toolkits save beside tensors are read as records; nothing of them is imported, nothing runs."""

import argparse
import builtins
import collections
import functools
import os
import pathlib
import sys
import types

import pytest
import torch

from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.weight_files.saving import refused, saved

TENSORS = {"model": {"a.weight": torch.ones(2)}}


class Reduced:
    """Pickled as a call of what it is made with."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def of_module(name, **classes):
    """A module that exists while something of it is pickled, and no longer when it is opened."""
    module = types.ModuleType(name)
    for called, base in classes.items():
        setattr(module, called, type(called, base, {"__module__": name, "__qualname__": called}))
    sys.modules[name] = module
    return module


def evidence(path):
    with open_weights(path) as weights:
        assert torch.equal(weights.read("a.weight"), torch.ones(2))
        return dict(weights.evidence)


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_options_are_read_as_dictionaries(tmp_path, new):
    args = argparse.Namespace(
        arch="transformer", sizes=[1, 2], inner=argparse.Namespace(deep=True), tensor=torch.ones(1)
    )
    content = TENSORS | {"args": args, "path": pathlib.PurePosixPath("a/b"), "count": collections.Counter("aab")}
    content["default"] = collections.defaultdict(int, {"x": 5})
    content["partial"] = functools.partial(int, base=2)
    path = saved(tmp_path / "m.pt", content, _use_new_zipfile_serialization=new)
    found = evidence(path)
    assert found["args"] == {"arch": "transformer", "sizes": [1, 2], "inner": {"deep": True}}
    assert found["count"] == {"a": 2, "b": 1}
    assert found["default"] == {"x": 5}


def test_a_class_of_a_toolkit_is_not_imported(tmp_path):
    """It is a record without methods that its file could name, and what its state says is data."""
    module = of_module("fairseq.made_up", Options=(), Loop=())
    sys.modules["fairseq"] = types.ModuleType("fairseq")
    one, loop = module.Options(), module.Loop()
    trap = {"__class__": "x", "__call__": "y", "__reduce__": "z"}
    one.__dict__ |= {"width": 12, "name": "x"} | trap
    loop.__dict__ |= {"me": loop, "n": 3}
    path = saved(tmp_path / "m.pt", TENSORS | {"cfg": one, "loop": loop})
    for name in ("fairseq.made_up", "fairseq"):
        del sys.modules[name]
    assert evidence(path) == {"cfg": {"width": 12, "name": "x"} | trap, "loop": {"n": 3}}


def hostile(marker):
    touch = f"touch {marker}"
    return {
        "os.system": Reduced(os.system, (touch,)),
        "eval": Reduced(builtins.eval, (f"open({str(marker)!r}, 'w')",)),
        "getattr": Reduced(builtins.getattr, (Reduced(builtins.__import__, ("os",)), "system")),
        "open": Reduced(builtins.open, (str(marker), "w")),
        "partial": Reduced(functools.partial, (os.system, touch)),
        "path": Reduced(pathlib.Path.touch, (pathlib.PurePosixPath(str(marker)),)),
    }


@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_what_would_run_code_leaves_no_trace(tmp_path, new):
    """It is refused, and a marker is never made. That the real child does so, too, is tried in `test_over_http`."""
    marker = tmp_path / "marker"
    for name, one in hostile(marker).items():
        for n, args in enumerate((one, argparse.Namespace(x=one))):
            content = TENSORS | {"args": args}
            path = saved(tmp_path / f"{name}{n}.pt", content, _use_new_zipfile_serialization=new)
            refused(path, "would run code|damaged")
    assert not marker.exists()


def test_endless_records_are_bounded(tmp_path):
    one = argparse.Namespace()
    for _ in range(40):
        one = argparse.Namespace(a=one, b=one)
    refused(saved(tmp_path / "m.pt", TENSORS | {"args": one}), "too many values")
