"""A tensor file that is accepted covers its bytes exactly, and any other bytes are refused."""

import json
import struct
import tracemalloc
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from tests.transformer.tensor_bytes import header_of, tensors_of
from transformer.errors import CheckpointError
from transformer.files.tensorfile import MAX_HEADER

A = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
B = {"dtype": "F16", "shape": [4], "data_offsets": [24, 32]}


def file_of(header, body=b"\0" * 32):
    """A file with this header: an object, or its bytes."""
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(content)) + content + body


def refused(content, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        header_of(content, label="tiny/model.safetensors")
    said = str(caught.value)
    assert said.startswith("tiny/model.safetensors: ")
    assert len(said) < 300
    assert "\n" not in said
    return said


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_the_library_writes_is_read(dtype):
    sizes = {"b": (3, 5), "a.weight": (7,), "none": (0, 4)}
    state = {name: torch.randn(size).to(dtype) for name, size in sizes.items()}
    found = tensors_of(save(state, metadata={"format": "pt"}))
    assert found.keys() == state.keys()
    for name, tensor in state.items():
        assert found[name].dtype == torch.float32
        assert torch.equal(found[name], tensor.float())
    kinds = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    kinds += ["bool", "complex64", "float8_e4m3fn", "float8_e5m2"]  # of these the headers
    header = header_of(save({kind: torch.zeros(3, 2).to(getattr(torch, kind)) for kind in kinds}))
    assert {name: info.shape for name, info in header.tensors.items()} == dict.fromkeys(kinds, (3, 2))


@pytest.mark.parametrize("length", [2**63, MAX_HEADER + 1])
def test_a_header_that_claims_to_be_huge_is_refused_before_it_is_read(length):
    content = struct.pack("<Q", length) + b"{}"
    tracemalloc.start()
    refused(content, f"{length:,} bytes")
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_a_file_of_another_length_says_how_much_is_wrong():
    whole = file_of({"a": A, "b": B})
    refused(whole[:7], r"too short .*\(7 bytes\)")
    refused(whole[:20], rf"header needs {len(whole) - 32} bytes, but the file has 20")
    refused(whole[:-5], "its tensors need 32 bytes, but only 27 bytes of the file are left")
    refused(whole + bytes(8), "8 bytes too long")
    refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer")
    refused(file_of(b"{"), "not JSON")
    refused(file_of(b"[]"), "not a JSON object")
    refused(file_of(b"[" * 10_000), "nested more than 4 levels deep")
    refused(file_of({"<img onerror=x>\n" * 50: A | {"dtype": "X"}}), "impossible dtype")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_offsets": [20, 28]}, "'b' begins at byte 20 instead of byte 24, where"),
        ({"data_offsets": [32, 24]}, "impossible data_offsets"),
        ({"data_offsets": [24]}, "impossible data_offsets"),
        ({"data_offsets": [24, 2**80]}, "impossible data_offsets"),
        ({"shape": [5]}, r"'b' of shape \[5\] and dtype F16 needs 10 bytes, but its data_offsets cover 8"),
        ({"shape": [-4]}, "impossible shape"),
        ({"shape": [True, 4]}, "impossible shape"),
        ({"shape": [2**40, 2**40]}, "impossible shape"),
        ({"shape": [2**62, 2**62, 2**62, 0]}, "needs 0 bytes"),
        ({"dtype": "F12"}, "impossible dtype 'F12'"),
        ({"extra": 1}, "must have the keys dtype, shape and data_offsets and no others"),
    ],
    ids=str,
)
def test_a_wrong_entry_names_its_tensor(changes, message):
    assert "'b'" in refused(file_of({"a": A, "b": B | changes}), message)


ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "I8", "F4", "X", 3]),
        "shape": st.lists(st.integers(-1, 4), max_size=3),
        "data_offsets": st.lists(st.integers(-1, 24), min_size=2, max_size=2),
    }
)
ENTRIES = st.dictionaries(st.text(max_size=3), ENTRY | st.none() | st.text(max_size=2), max_size=3)


@given(ENTRIES | st.binary(max_size=200), st.binary(max_size=24), st.integers(0, 300))
def test_a_header_that_is_accepted_covers_the_file_exactly(entries, body, length):
    content = file_of(entries, body)
    for other in (body, struct.pack("<Q", length) + body):
        with suppress(CheckpointError):
            header_of(other)
    try:
        header = header_of(content)
    except CheckpointError:
        return
    covered = [i for info in header.tensors.values() for i in range(info.begin, info.end)]
    assert covered == list(range(len(body)))
    assert header.start + len(body) == len(content)
