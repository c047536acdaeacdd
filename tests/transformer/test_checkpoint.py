import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as from_safetensors
from safetensors.torch import save as to_safetensors

import transformer
from tests.transformer.tiny import tiny_config
from transformer.checkpoint import Checkpoint, expected_shapes, load
from transformer.errors import CheckpointError, GlassformerError
from transformer.model import Transformer
from transformer.query import Greedy

WEIGHTS = "model.safetensors"


def refused(folder, message):
    """The error is one line of one or two sentences that names the file."""
    with pytest.raises(CheckpointError, match=message) as caught:
        load(folder)
    text = str(caught.value)
    assert text.startswith("spoilt")
    assert "\n" not in text
    assert len(text) < 900
    return text


def config_with(**changes):
    return lambda old: json.dumps(json.loads(old) | changes).encode()


def weights_with(change):
    """Applies a function to the dictionary of tensors."""

    def edit(old):
        state = from_safetensors(old)
        change(state)
        return to_safetensors(state)

    return edit


def test_what_was_saved_is_loaded(checkpoint_folder):
    checkpoint = load(checkpoint_folder)
    stored = from_safetensors((checkpoint_folder / WEIGHTS).read_bytes())
    state = checkpoint.model.state_dict()
    assert state.keys() == stored.keys()
    for name, tensor in state.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, stored[name].float())
    assert checkpoint.name == "tiny"
    assert checkpoint.warnings == ()
    assert checkpoint.card.title == "Tiny"
    assert checkpoint.card.parameters == checkpoint.config.count_parameters()
    assert checkpoint.src_tokenizer is not checkpoint.tgt_tokenizer
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())


@pytest.mark.parametrize("fixture", ["checkpoint_folder", "shared_checkpoint_folder"])
def test_a_loaded_model_computes_what_one_built_the_usual_way_does(fixture, request):
    checkpoint = load(request.getfixturevalue(fixture))
    usual = Transformer(checkpoint.config).eval()
    usual.load_state_dict(checkpoint.model.state_dict())
    src, tgt = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 4, 5]])
    assert torch.equal(checkpoint.model(src, tgt), usual(src, tgt))
    assert not any(t.is_meta for t in (*checkpoint.model.parameters(), *checkpoint.model.buffers()))


def test_a_shared_vocabulary_is_one_tokenizer_and_one_table(shared_checkpoint_folder):
    checkpoint = load(str(shared_checkpoint_folder))
    assert checkpoint.src_tokenizer is checkpoint.tgt_tokenizer
    assert checkpoint.model.output_weight is checkpoint.model.src_table
    assert not (shared_checkpoint_folder / "source.model").exists()


def test_a_checkpoint_runs(checkpoint_folder):
    checkpoint = transformer.load(checkpoint_folder)
    trace = checkpoint.run("ba lo mi")
    assert trace.query.checkpoint == checkpoint.content_hash
    assert trace == checkpoint.run(checkpoint.query("ba lo mi", decoding=Greedy()))


def test_equality_goes_by_content_and_the_card_has_no_part_in_it(checkpoint_folder, spoil):
    first, again = load(checkpoint_folder), load(spoil())
    assert first == again
    assert hash(first) == hash(again)
    assert len(first.content_hash) == 64
    assert load(spoil("card.json", b'{"title": "Other"}')) == first
    assert load(spoil("config.json", config_with(norm_eps=2e-5))) != first
    assert first != "tiny"


def test_every_file_but_the_card_is_part_of_the_hash(checkpoint_folder, spoil):
    before = load(checkpoint_folder).content_hash
    hashes = {before}
    nudge = weights_with(lambda state: state["src_table"].add_(0.25))
    for name, change in {
        WEIGHTS: nudge,
        "config.json": lambda old: old + b"\n",
        "source.model": lambda old: old + b"\x1a\x00",  # an empty message more
        "target.model": lambda old: old + b"\x1a\x00",
    }.items():
        hashes.add(load(spoil(name, change)).content_hash)
    assert len(hashes) == 5


def test_loading_draws_no_random_numbers(checkpoint_folder):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load(checkpoint_folder)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_float_type_may_be_stored(spoil, dtype):
    def convert(state):
        state.update({name: tensor.to(dtype) for name, tensor in state.items()})

    checkpoint = load(spoil(WEIGHTS, weights_with(convert)))
    assert {p.dtype for p in checkpoint.model.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", ["config.json", WEIGHTS, "source.model", "target.model"])
def test_a_missing_or_empty_file_is_named(spoil, name):
    assert name in refused(spoil(name, b""), "empty|too short|not JSON")
    refused(spoil(name), f"{name}: is missing")


def test_a_missing_folder_and_a_file_in_its_place(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        load(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="expected a folder"):
        load(tmp_path / "file")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10**9}, "config.json: d_model: found 1000000000"),
        ({"n_encoder_layers": 10**6}, "n_encoder_layers: found 1000000, expected 1 to 64"),
        ({"n_heads": 3}, "n_heads: d_model = 16 cannot be split into 3"),
        ({"d_ff": None}, "d_ff: found None"),
        ({"eos_id": -1}, "eos_id: found -1"),
        ({"bos_id": 10**6}, "bos_id: found 1000000"),
        ({"format_version": 9}, "format_version: found 9"),
    ],
)
def test_a_wrong_config_names_its_field(spoil, changes, message):
    refused(spoil("config.json", config_with(**changes)), message)


@pytest.mark.parametrize(
    "content",
    [b"[]", b"3", b"null", b'{"d_model": NaN}', b"[" * 50_000, b"[" * 200_000, b"1" * 5000, b"<html>"],
)
def test_a_config_that_is_no_object_is_refused_at_once(spoil, content):
    folder = spoil("config.json", content)
    started = time.process_time()
    refused(folder, "config.json: ")
    assert time.process_time() - started < 0.2


def test_keys_that_mean_nothing_are_reported(spoil):
    changes = {"auto_map": {"AutoModel": "evil.Model"}, "trust_remote_code": True, "path": "/etc"}
    checkpoint = load(spoil("config.json", config_with(**changes)))
    (warning,) = (w for w in checkpoint.warnings if "config.json has" in w)
    assert all(f"'{key}'" in warning for key in changes)
    assert "evil" not in sys.modules


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_config_that_asks_for_everything_costs_no_memory(spoil):
    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    load(spoil())
    before = resident()
    for changes in (
        {"d_model": 10**9, "n_encoder_layers": 10**6},
        {"d_model": 16_384, "n_encoder_layers": 64, "n_decoder_layers": 64},
        {
            "d_model": 4096,
            "d_ff": 16_384,
            "n_encoder_layers": 3,
        },  # within the limits, but not what the file holds
        {"src_vocab_size": 900_000, "tgt_vocab_size": 900_000, "d_model": 256},
        {"max_len": 32_768, "d_model": 1024},
    ):
        refused(
            spoil("config.json", config_with(**changes)), "config.json|vocabulary|tensors of another shape"
        )
    assert resident() - before < 50e6


def test_all_three_sizes_of_a_vocabulary_are_compared(spoil):
    size = load(spoil()).config.src_vocab_size
    message = refused(spoil("config.json", config_with(src_vocab_size=size + 1)), "the src vocabulary has")
    assert f"{size + 1} pieces by config.json" in message
    assert f"{size} rows in src_table" in message
    assert f"{size} in source.model" in message


def test_a_table_or_tokenizer_of_another_size(spoil, checkpoint_folder):
    longer = weights_with(lambda state: state.update(tgt_table=torch.zeros(99, 16)))
    refused(spoil(WEIGHTS, longer), "the tgt vocabulary has .* 99 rows in tgt_table")
    spoil(WEIGHTS, (checkpoint_folder / WEIGHTS).read_bytes())
    refused(
        spoil("source.model", (checkpoint_folder / "target.model").read_bytes()), "in source.model; all must"
    )


def test_tensors_that_are_missing_or_too_many_are_listed(spoil):
    def remove(state):
        for name in [name for name in state if "cross_attn" in name]:
            del state[name]

    message = refused(spoil(WEIGHTS, weights_with(remove)), r"20 tensors are missing: .*\.\.\.")
    assert message.count("cross_attn") == 5


def test_tensors_that_are_not_called_for_are_listed(spoil):
    refused(
        spoil(
            WEIGHTS, weights_with(lambda s: s.update({"<script>": torch.zeros(1), "x\ny": torch.zeros(2)}))
        ),
        r"2 tensors that config.json does not call for: '<script>', 'x\\ny'",
    )


def test_tensors_of_another_shape_are_listed(spoil):
    refused(
        spoil(WEIGHTS, weights_with(lambda s: s.update({"encoder.final_norm.bias": torch.zeros(8, 2)}))),
        r"1 tensors of another shape .*'encoder.final_norm.bias' \(found \[8, 2\], expected \[16\]\)",
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.float8_e4m3fn, torch.bool])
def test_tensors_of_another_type_are_named_with_it(spoil, dtype):
    kind = {torch.int64: "I64", torch.complex64: "C64", torch.bool: "BOOL"}.get(dtype, "F8_E4M3")
    change = weights_with(lambda s: s.update({"encoder.final_norm.bias": torch.zeros(16).to(dtype)}))
    refused(spoil(WEIGHTS, change), rf"whose dtype is not .*'encoder.final_norm.bias' \({kind}\)")


def test_values_that_are_not_finite_are_loaded_with_a_warning(spoil):
    def poison(state):
        state["encoder.final_norm.bias"][3] = float("nan")
        state["src_table"][1, :2] = float("inf")

    checkpoint = load(spoil(WEIGHTS, weights_with(poison)))
    (warning,) = (w for w in checkpoint.warnings if "finite" in w)
    assert "'encoder.final_norm.bias' (1 of 16)" in warning
    assert "'src_table' (2 of" in warning


@pytest.mark.parametrize("change", [lambda old: old[:-1], lambda old: old + b"\0", lambda old: old[:100]])
def test_a_damaged_tensor_file(spoil, change):
    refused(spoil(WEIGHTS, change), f"{WEIGHTS}: (cut off|1 bytes too long)")


def test_a_file_far_longer_than_the_config_allows_is_not_read(spoil):
    with (spoil() / WEIGHTS).open("ab") as file:
        file.truncate(1 << 40)  # a terabyte of hole
    refused(spoil(), f"{WEIGHTS}: has 1,099,511,627,776 bytes; at most")


@pytest.mark.parametrize("name", ["source.model", "target.model"])
@pytest.mark.parametrize("content", [b"<html>no</html>", b"\x80" * 99, lambda old: old[: len(old) // 2]])
def test_a_damaged_tokenizer_is_named(spoil, name, content):
    refused(spoil(name, content), f"{name}: ")


def test_a_special_id_that_is_an_ordinary_piece_is_reported(spoil):
    checkpoint = load(spoil("config.json", config_with(eos_id=6)))
    piece = checkpoint.tgt_tokenizer.piece(6)
    assert f"config.json says eos_id = 6; in target.model that is the piece {piece!r}." in checkpoint.warnings


def test_a_card_is_not_needed(spoil):
    checkpoint = load(spoil("card.json"))
    assert checkpoint.card.title == ""
    assert checkpoint.warnings == ()


def test_a_card_that_cannot_be_read_is_a_warning(spoil):
    assert "card.json is left out" in load(spoil("card.json", b"{")).warnings[0]
    assert "at most 1,000,000" in load(spoil("card.json", b" " * 2_000_000)).warnings[0]


def test_files_that_the_card_was_not_written_for_are_reported(spoil):
    checkpoint = load(spoil("config.json", lambda old: old + b" "))
    assert checkpoint.warnings == (
        "config.json is not the file that card.json describes (its SHA-256 differs).",
    )


def test_a_folder_that_is_replaced_while_it_is_read_gives_one_version(checkpoint_folder, spoil, tmp_path):
    """Two versions take turns in one place; whatever is loaded is one of them whole."""
    zeros = weights_with(lambda s: s.update({name: torch.zeros_like(t) for name, t in s.items()}))
    other = spoil(WEIGHTS, zeros)
    spoil("config.json", config_with(norm_eps=0.05))
    expected = {load(folder).content_hash for folder in (checkpoint_folder, other)}
    place, stop = tmp_path / "place", threading.Event()
    copies = [
        shutil.copytree(folder, tmp_path / f"copy{i}") for i, folder in enumerate((checkpoint_folder, other))
    ]
    os.rename(copies[0], place)
    copies[0] = place

    def swap():
        while not stop.is_set():
            os.rename(place, tmp_path / "aside")
            os.rename(copies[1], place)
            os.rename(tmp_path / "aside", copies[1])

    thread = threading.Thread(target=swap)
    thread.start()
    found, refusals = set(), []
    try:
        for _ in range(60):
            try:
                found.add(load(place).content_hash)
            except CheckpointError as error:
                refusals.append(str(error))
    finally:
        stop.set()
        thread.join()
    assert found <= expected
    expected_refusals = ("is missing", "no such folder", "being replaced")
    assert all(any(words in text for words in expected_refusals) for text in refusals), refusals


def test_expected_shapes_are_those_of_the_model():
    for changes in ({}, {"positions": "learned", "tie_output": False, "bias": False}):
        config = tiny_config(**changes)
        real = {name: tuple(t.shape) for name, t in Transformer(config).state_dict().items()}
        assert expected_shapes(config) == real


def test_errors_are_of_the_one_tree():
    assert issubclass(CheckpointError, GlassformerError)
    assert issubclass(GlassformerError, ValueError)
    assert Checkpoint.__hash__ is not None


def test_a_first_load_imports_no_compiler(checkpoint_folder):
    """torch's decompositions bring sympy along, which costs seconds at the start of the app."""
    code = (
        "import sys; from transformer.checkpoint import load; before = set(sys.modules); "
        f"load({str(checkpoint_folder)!r}); "
        "print(sorted({n.split('.')[0] for n in set(sys.modules) - before} & {'sympy'}), "
        "[n for n in set(sys.modules) - before if n.startswith('torch._refs')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[] []"
