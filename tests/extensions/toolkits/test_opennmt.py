"""A file of OpenNMT-py's versions 2 and 3 opens and computes what OpenNMT-py computes."""

import argparse
import collections
import sys
import types

import pytest
import torch

from glassformer.extensions.importers.library import opening
from tests.extensions.refusing import refusal
from tests.extensions.toolkits.plain import check
from tests.extensions.toolkits.references import opennmt, sines
from tests.extensions.toolkits.test_records import of_module
from transformer.checkpoint.opening import load

SIZES = (23, 19)
OPT = {
    "model_type": "text", "encoder_type": "transformer", "decoder_type": "transformer", "layers": 6, "enc_layers": 2,
    "dec_layers": 3, "heads": 3, "transformer_ff": 20, "position_encoding": True, "self_attn_type": "scaled-dot",
    "max_relative_positions": 0, "copy_attn": False, "share_embeddings": False, "share_decoder_embeddings": False,
    "pos_ffn_activation_fn": "relu", "src_word_vec_size": 12, "tgt_word_vec_size": 12, "word_vec_size": -1,
    "dropout": [0.1], "generator_function": "softmax", "global_attention": "general", "optim": "adam",
}  # fmt: skip
OF_VERSION = {
    2: {"rnn_size": 12, "enc_rnn_size": 12, "dec_rnn_size": 12},
    3: {"hidden_size": 12, "enc_hid_size": 12, "dec_hid_size": 12, "model_task": "seq2seq", "layer_norm": "standard",
        "norm_eps": 1e-6, "num_experts": 0, "num_kv": 0, "add_ffnbias": True, "add_qkvbias": False,
        "parallel_residual": False, "lora_layers": [], "quant_layers": [], "self_attn_type": "scaled-dot-flash",
        "position_encoding_type": "SinusoidalInterleaved", "decoder_start_token": "<s>"},
}  # fmt: skip
VARIANTS = {
    "as it is": {},
    "gelu": {"pos_ffn_activation_fn": "gelu", "share_decoder_embeddings": True},
    "shared": {"share_embeddings": True, "share_decoder_embeddings": True},
}
OF_3 = {
    "concat": {"position_encoding_type": "SinusoidalConcat", "add_qkvbias": True},
    "gate": {"pos_ffn_activation_fn": "silu", "add_ffnbias": False},
    "gelu gate": {"pos_ffn_activation_fn": "gated-gelu"},
}


def lists(sizes, *, version, shared):
    """Versions 1 and 2 give a source without start and end; version 3 gives both sides all four."""
    source = ["<unk>", "<blank>", *(["<s>", "</s>"] if version == 3 or shared else [])]
    target = ["<unk>", "<blank>", "<s>", "</s>"]
    return [
        [*first, *(f"{'x' if shared else name}{i}" for i in range(len(first), size))]
        for first, size, name in ((source, sizes[0], "x"), (target, sizes[1], "y"))
    ]


def vocabulary(names, version):
    if version == 3:
        return {"src": names[0], "tgt": names[1], "data_task": "seq2seq", "decoder_start_token": "<s>"}
    fields = {}
    sys.modules["torchtext"] = types.ModuleType("torchtext")
    text = of_module("torchtext.data", Field=())
    words = of_module("torchtext.vocab", Vocab=())
    sys.modules["onmt"] = types.ModuleType("onmt")
    multi = of_module("onmt.text_dataset", TextMultiField=())
    for side, own in zip(("src", "tgt"), names, strict=True):
        field, held, many = text.Field(), words.Vocab(), multi.TextMultiField()
        held.__dict__ |= {"itos": own, "freqs": collections.Counter(own), "stoi": collections.defaultdict(int)}
        held.stoi.update({name: i for i, name in enumerate(own)})
        field.__dict__ |= {"vocab": held, "pad_token": "<blank>", "tokenize": None, "dtype": torch.int64}
        many.fields = [(side, field)]
        fields[side] = many
    return fields


def saved(folder, *, version=2, **changes):
    opt = OPT | OF_VERSION[version] | changes
    shared = opt["share_embeddings"]
    sizes = (SIZES[0],) * 2 if shared else SIZES
    reference = opennmt(opt, sizes, version)
    of_generator = {name: name.removeprefix("generator.") for name in reference.state if name.startswith("generator.")}
    generator = {short: reference.state[name] for name, short in of_generator.items()}
    state = {name: value for name, value in reference.state.items() if name not in of_generator}
    state |= {f"{one}.embeddings.make_embedding.pe.pe": table(opt) for one in ("encoder", "decoder")}
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "model": state, "generator": generator, "opt": argparse.Namespace(**opt),
        "vocab": vocabulary(lists(sizes, version=version, shared=shared), version),
        "optim": {"training_step": 5, "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}}},
    }  # fmt: skip
    torch.save(content, folder / "model_step_5.pt")
    for name in ("torchtext.data", "torchtext.vocab", "torchtext", "onmt.text_dataset", "onmt"):
        sys.modules.pop(name, None)
    return folder / "model_step_5.pt", reference


def table(opt, most=5000):
    """Its buffer [L, 1, D], in float32."""
    apart = opt.get("position_encoding_type") == "SinusoidalConcat"
    return sines(0, most, 12, apart=apart)[:, None].float()


@pytest.mark.parametrize(
    ("version", "name"), [(2, "as it is"), (2, "shared"), (3, "gelu"), (3, "shared"), *((3, name) for name in OF_3)]
)
def test_it_computes_what_opennmt_does(tmp_path, name, version):
    path, reference = saved(tmp_path, version=version, **(VARIANTS | OF_3)[name])
    checkpoint = load(path)
    sizes = (SIZES[0],) * 2 if name == "shared" else SIZES
    check(checkpoint, reference, size=sizes, least=4)
    assert checkpoint.model.config.positions == "sinusoidal"


REFUSED = {
    "encoder_type": {"encoder_type": "brnn"},
    "model_task": {"model_task": "lm"},
    "self_attn_type": {"self_attn_type": "average"},
    "max_relative_positions": {"max_relative_positions": -1},
    "copy_attn": {"copy_attn": True},
    "position_encoding": {"position_encoding": False},
    "num_experts": {"num_experts": 4},
    "layer_norm": {"layer_norm": "rms"},
    "lora_layers": {"lora_layers": ["linear_keys"]},
    "tgt_word_vec_size": {"tgt_word_vec_size": 6},
    "n_heads": {"heads": 5},
}


def say_otherwise(path, changes):
    content = torch.load(path, weights_only=False)
    torch.save(content | {"opt": argparse.Namespace(**OPT | OF_VERSION[3] | changes)}, path)


def test_ids_that_differ_and_a_vocabulary_that_is_missing(tmp_path):
    path, _ = saved(tmp_path, version=3)
    content = torch.load(path, weights_only=False)
    content["vocab"]["src"][:2] = "<blank>", "<unk>"
    torch.save(content, path)
    refusal(lambda: opening.preview(path), r"<blank>.* has the id 0 in the source's list of tokens and 1")
    for odd in (None, [[["src"], {}], ["tgt", 5]]):
        torch.save(content | {"vocab": odd}, path)
        refusal(lambda: opening.preview(path), "has no vocabulary")
