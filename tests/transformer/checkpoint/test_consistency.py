"""Files of a checkpoint that do not fit each other are refused in a sentence that names the file."""

import gc
import os
import sys
from pathlib import Path

import pytest
import torch

from tests.transformer.spoiling import config_with, refused, weights_with
from tests.transformer.tiny import tiny_config
from transformer.checkpoint.consistency import expected_shapes
from transformer.checkpoint.load import load
from transformer.model.transformer import Transformer

WEIGHTS = "model.safetensors"


def updated(**tensors):
    return weights_with(lambda state: state.update(tensors))


def without_cross_attention(state):
    for name in [name for name in state if "cross_attn" in name]:
        del state[name]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *((name, None, f"{name}: is missing") for name in ("config.json", WEIGHTS, "source.model")),
        ("source.model", b"", "source.model: is empty"),
        ("target.model", lambda old: old[: len(old) // 2], "target.model: "),
        (WEIGHTS, lambda old: old[:-1], f"{WEIGHTS}: is cut off"),
        ("config.json", config_with(d_model=10**9), "config.json: d_model: found 1000000000"),
        ("config.json", config_with(format_version=9), "config.json: format_version: found 9"),
        ("config.json", b'{"d_model": NaN}', "config.json: .*NaN"),
        (
            *(WEIGHTS, updated(**{"<script>": torch.zeros(1), "x\ny": torch.zeros(2)})),
            "2 tensors do not belong to the model that config.json describes: '<script>', 'x\\\\ny'",
        ),
        (
            *(WEIGHTS, updated(**{"encoder.final_norm.bias": torch.zeros(8, 2)})),
            r"1 tensor has a different shape .*'encoder.final_norm.bias' \(found \[8, 2\], expected \[16\]\)",
        ),
        (
            *(WEIGHTS, updated(**{"encoder.final_norm.bias": torch.zeros(16).to(torch.float8_e4m3fn)})),
            r"dtype other than F16, BF16, F32 or F64: .*'encoder.final_norm.bias' \(F8_E4M3\)",
        ),
        (WEIGHTS, weights_with(without_cross_attention), r"20 tensors are missing: ('[^']*cross_attn\S*', ){5}\.\.\."),
    ],
)
def test_a_file_that_is_missing_or_spoilt_or_does_not_fit_is_named(spoil, name, content, message):
    refused(spoil(name, content), message)


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
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    load(spoil())
    before = resident()
    for changes in (
        {"d_model": 10**9, "n_encoder_layers": 10**6},
        {"d_model": 16_384, "n_encoder_layers": 64, "n_decoder_layers": 64},
        {"d_model": 4096, "d_ff": 16_384, "n_encoder_layers": 3},  # within the limits, but not what the file holds
        {"src_vocab_size": 900_000, "tgt_vocab_size": 900_000, "d_model": 256},
        {"max_len": 32_768, "d_model": 1024},
    ):
        refused(spoil("config.json", config_with(**changes)), "config.json|vocabulary|tensors have different shapes")
    assert resident() - before < 50e6
    with (spoil() / WEIGHTS).open("ab") as file:
        file.truncate(1 << 40)  # a terabyte of hole, far more than a config allows
    refused(spoil(), f"{WEIGHTS}: has 1,099,511,627,776 bytes; the limit is")


def test_all_three_sizes_of_a_vocabulary_are_compared(spoil, checkpoint_folder):
    size = load(spoil()).config.src_vocab_size
    said = "the sizes of the src vocabulary differ"
    message = refused(spoil("config.json", config_with(src_vocab_size=size + 1)), said)
    for where in (f"{size + 1} in config.json", f"{size} rows in src_table", f"{size} tokens in source.model"):
        assert where in message
    spoil("config.json", config_with(src_vocab_size=size))
    longer = updated(tgt_table=torch.zeros(99, 16))
    refused(spoil(WEIGHTS, longer), "the sizes of the tgt vocabulary differ: .* 99 rows in tgt_table")
    spoil(WEIGHTS, (checkpoint_folder / WEIGHTS).read_bytes())
    refused(spoil("source.model", (checkpoint_folder / "target.model").read_bytes()), said)


def test_expected_shapes_are_those_of_the_model():
    for changes in ({}, {"positions": "learned", "tie_output": False, "bias": False}):
        config = tiny_config(**changes)
        real = {name: tuple(t.shape) for name, t in Transformer(config).state_dict().items()}
        assert expected_shapes(config) == real
