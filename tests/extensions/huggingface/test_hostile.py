"""A folder that wants something else than to be read gets one sentence that names it, at once; nothing is run."""

import json
import os
import resource
import shutil
import sys
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

from glassformer.extensions.huggingface.folder import import_folder
from tests.conftest import AT_ONCE
from tests.extensions.huggingface.parity import change_config, saved
from tests.extensions.huggingface.tiny_families import FAMILIES, model_of
from tests.extensions.refusing import assert_sentence
from transformer.errors import CheckpointError

CONFIG, GENERATION = "config.json", "generation_config.json"
OFTEN = ("marian", "t5", "gpt2", "gemma3_text", "roberta")  # each of another module, or with other kinds of tensors


@pytest.fixture(
    scope="module", params=[name if name in OFTEN else pytest.param(name, marks=pytest.mark.deep) for name in FAMILIES]
)
def family(request, tmp_path_factory):
    made = saved(model_of(request.param), tmp_path_factory.mktemp(request.param) / "m", eos_token_id=2)
    assert json.loads((made / CONFIG).read_text())["model_type"] == request.param
    return made


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return saved(model_of("gpt2"), tmp_path_factory.mktemp("good") / "gpt2", eos_token_id=3)


@pytest.fixture
def folder(good, tmp_path):
    return shutil.copytree(good, tmp_path / "m")


def refusal(folder):
    """What is said of a folder, in one line; nothing if it opens, and then the report can be printed."""
    try:
        assert str(import_folder(folder).report)
    except CheckpointError as error:
        return assert_sentence(error, str(folder), most=1200)
    return ""


def test_tensors_that_are_wrong_are_named(family):
    """Each kind of tensor once: gone, beside another, of another shape."""
    path = family / "model.safetensors"
    whole = load_file(path)
    kinds = {name.replace(".1.", ".0."): name for name in whole}.values()
    for i, name in enumerate(kinds):
        value = whole[name]
        other = value[:, :-1] if value.dim() == 2 else value[:-1]
        state = ({**whole, name: other.contiguous()}, {key: whole[key] for key in whole if key != name},
                 {**whole, f"{name}.more": torch.ones(2)})[i % 3]  # fmt: skip
        save_file(state, path)
        said = refusal(family)
        idle = ("final_logits_bias", "embed_positions")  # it is 0, and a formula gives it, where it is missing
        assert name in said or (name not in state and any(part in name for part in idle)), (name, said)
    save_file(whole, path)


def test_a_wrong_value_is_named_with_its_field_and_costs_nothing(folder):
    text = (folder / CONFIG).read_text()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for field, value in (
        ("n_embd", 10**9), ("n_layer", 10**6), ("n_head", 0), ("n_head", -1), ("n_head", None), ("n_head", "2"),
        ("n_head", 3), ("n_head", True), ("n_head", [2]), ("n_head", 2.0), ("n_positions", 2**70), ("vocab_size", 0),
        ("layer_norm_epsilon", -1), ("layer_norm_epsilon", "1e-5"), ("activation_function", "import os"),
        ("n_inner", -8), ("tie_word_embeddings", "yes"),
    ):  # fmt: skip
        change_config(folder, **{field: value})
        said = refusal(folder)
        assert field in said or "tensor" in said
        (folder / CONFIG).write_text(text)
    # In kilobytes; what is claimed would take gigabytes, and a module that is first needed here takes some room, too.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


NO_JSON = [(b"", "not JSON"), (b"[" * 200_000, "nested more than 16 levels deep"), (b"[]", "expected a JSON object")]


@pytest.mark.parametrize("name", [CONFIG, GENERATION, "tokenizer_config.json"])
def test_json_that_is_none_is_refused_at_once(folder, name):
    started = time.process_time()
    for content, message in NO_JSON:
        (folder / name).write_bytes(content)
        said = refusal(folder)
        assert name in said
        assert message in said
    assert time.process_time() - started < AT_ONCE


def test_code_that_a_folder_names_is_not_run(folder):
    """Neither by its config nor by its tokenizer's; what is known of the family is read."""
    code = {"auto_map": {"AutoModel": "evil.Model", "AutoTokenizer": "evil.Tokenizer"}, "trust_remote_code": True}
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / "tokenizer_config.json").write_text(json.dumps({**code, "tokenizer_class": "EvilTokenizer"}))
    change_config(folder, auto_map=code["auto_map"], _name_or_path="../../etc/passwd")
    assert "EvilTokenizer" in (refusal(folder) or str(import_folder(folder).report))
    assert "evil" not in sys.modules


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("name", [CONFIG, GENERATION, "model.safetensors", "tokenizer_config.json"])
def test_a_link_that_leaves_the_folder_and_a_pipe_are_not_opened(folder, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text('{"secret": 1}')
    (folder / "merges.txt").write_text("")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    said = refusal(folder)
    assert "link that points outside the folder" in said
    assert "secret" not in said
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert any(part in refusal(folder) for part in ("not a regular file", "no file of weights", "has no"))


def test_tensors_of_a_wrong_type_or_that_are_no_numbers(folder, good):
    state = load_file(good / "model.safetensors")
    name = next(iter(state))
    for dtype in (torch.int64, torch.float8_e4m3fn, torch.complex64):
        save_file(state | {name: state[name].to(dtype)}, folder / "model.safetensors")
        content = import_folder(folder).content
        with pytest.raises(CheckpointError, match=f"{name!r} has dtype"), content.values() as opened:
            dict(opened.read())
