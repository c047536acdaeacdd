"""Folders that want something else than to be read: one sentence each, and nothing outside of them is opened.

Wrong keys and tensors of every family are in `test_hostile`.
"""

import json
import os
import resource
import sys
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.conftest import AT_ONCE
from tests.extensions.huggingface.library.parity import change_config, saved, tiny
from transformer.errors import CheckpointError

CONFIG, GENERATION = "config.json", "generation_config.json"
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One that can be read."""
    root = tmp_path_factory.mktemp("good")
    gpt2 = GPT2Config(vocab_size=31, n_embd=8, n_layer=1, n_head=2, n_positions=16, bos_token_id=3, eos_token_id=3)
    saved(tiny(GPT2LMHeadModel, gpt2), root / "gpt2", eos_token_id=3)
    return root


@pytest.fixture
def folder(folders, tmp_path):
    return copied(folders / "gpt2", tmp_path / "m")


def copied(source, target):
    """A folder with the same files."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def refused(folder, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        import_folder(folder)
    text = str(caught.value)
    assert text.startswith(str(folder))
    assert "\n" not in text
    assert len(text) - len(str(folder)) < 500
    return text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_embd", 10**9), ("n_layer", 10**6), ("n_head", 0), ("n_head", -1), ("n_head", None), ("n_head", "2"),
        ("n_head", 3), ("n_head", True), ("n_head", [2]), ("n_head", 2.0), ("n_positions", 2**70), ("vocab_size", 0),
        ("layer_norm_epsilon", -1), ("layer_norm_epsilon", "1e-5"), ("activation_function", 3),
        ("activation_function", "import os"), ("n_inner", -8), ("tie_word_embeddings", "yes"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_field_and_costs_nothing(folder, field, value):
    change_config(folder, **{field: value})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = refused(folder, r"config\.json|tensor")
    # In kilobytes; what is claimed would take gigabytes, and a module that is first needed here takes some room, too.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
    assert field in text or "tensor" in text


@pytest.mark.parametrize("name", [CONFIG, GENERATION, "tokenizer_config.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe{}", "not valid UTF-8"),
        (b"[" * 200_000, "nested more than 16 levels deep"),
        (b'{"a": NaN}', "NaN is not a valid number in JSON"),
        (b'{"a": 1e999}', "1e999.* is too large"),
        (b'{"a": 1' + b"0" * 5_000 + b"}", "a number with 5,001 digits"),
        (b'{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        (b"[]", "expected a JSON object"),
        (b"<!DOCTYPE html>", "not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_that_is_none_is_refused_at_once(folder, name, content, message):
    (folder / name).write_bytes(content)
    started = time.process_time()
    assert name in refused(folder, message)
    assert time.process_time() - started < AT_ONCE


def test_code_that_a_folder_names_is_not_run(folder):
    """Neither by its config nor by its tokenizer's; what is known of the family is read."""
    code = {"auto_map": {"AutoModel": "evil.Model", "AutoTokenizer": "evil.Tokenizer"}, "trust_remote_code": True}
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / "tokenizer_config.json").write_text(json.dumps({**code, "tokenizer_class": "EvilTokenizer"}))
    change_config(folder, auto_map=code["auto_map"], _name_or_path="../../etc/passwd")
    try:
        report = str(import_folder(folder).report)
    except CheckpointError as error:
        report = str(error)
    assert "auto_map" in report or "EvilTokenizer" in report
    assert "evil" not in sys.modules


@posix
@pytest.mark.parametrize("name", [CONFIG, GENERATION, "model.safetensors", "tokenizer_config.json", "vocab.json"])
def test_a_link_that_leaves_the_folder_and_a_pipe_are_not_opened(folder, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text('{"secret": 1}')
    (folder / "merges.txt").write_text("")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    assert "secret" not in refused(folder, "link that points outside the folder")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, "not a regular file|no file of weights|has no")


def test_tensors_of_a_wrong_type_or_that_are_no_numbers(folder, folders):
    state = load_file(folders / "gpt2" / "model.safetensors")
    name = next(iter(state))
    for dtype in (torch.int64, torch.float8_e4m3fn, torch.complex64):
        save_file(state | {name: state[name].to(dtype)}, folder / "model.safetensors")
        content = import_folder(folder).content
        with pytest.raises(CheckpointError, match=f"{name!r} has dtype"), content.values() as opened:
            dict(opened.read())
