"""A file of fairseq's opens in every form of its options and names, and computes what fairseq computes."""

import argparse
import collections
import re

import pytest
import torch

from glassformer.extensions.importers.library import opening
from tests.extensions.refusing import refusal
from tests.extensions.toolkits.plain import check
from tests.extensions.toolkits.references import fairseq
from transformer.checkpoint.opening import load
from transformer.checkpoint.save import save

SIZES = (23, 19)
ARGS = {
    "arch": "transformer_iwslt_de_en", "task": "translation", "source_lang": "de", "target_lang": "en",
    "encoder_embed_dim": 12, "decoder_embed_dim": 12, "encoder_ffn_embed_dim": 20, "decoder_ffn_embed_dim": 20,
    "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
    "encoder_normalize_before": False, "decoder_normalize_before": False, "max_source_positions": 40,
    "max_target_positions": 40, "activation_fn": "relu", "share_all_embeddings": False,
    "share_decoder_input_output_embed": False, "adaptive_softmax_cutoff": None, "dropout": 0.3, "lr": [0.0005],
    "decoder_input_dim": 12, "decoder_output_dim": 12, "encoder_layerdrop": 0, "encoder_embed_path": None,
}  # fmt: skip
VARIANTS = {
    "post": {},
    "pre": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "learned": {"encoder_learned_pos": True, "decoder_learned_pos": True},
    "unscaled": {"no_scale_embedding": True, "layernorm_embedding": True, "activation_fn": "gelu"},
    "nowhere": {"no_token_positional_embeddings": True, "activation_fn": "gelu_accurate"},
    "linear": {"activation_fn": "linear", "share_decoder_input_output_embed": True},
    "narrow decoder": {"decoder_attention_heads": 4, "decoder_ffn_embed_dim": 8},
    "shared": {"share_all_embeddings": True, "share_decoder_input_output_embed": True},
}


def dictionary(size, *, name):
    return "".join(f"{name}{i}@@ {100 - i}\n" for i in range(size - 4))


def saved(folder, *, form="args", rename=None, **changes):
    """A folder as a training leaves it: the state, its options in one of the forms, the lists."""
    args = ARGS | changes
    shared = args["share_all_embeddings"]
    sizes = (SIZES[0],) * 2 if shared else SIZES
    reference = fairseq(args, sizes)
    state = dict(reference.state)
    state |= {"encoder.version": torch.Tensor([3]), "decoder.version": torch.Tensor([3])}
    if not (args.get("encoder_learned_pos") or args.get("no_token_positional_embeddings")):
        state |= {f"{stack}.embed_positions._float_tensor": torch.zeros(1) for stack in ("encoder", "decoder")}
    state = rename(state) if rename else state
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "model": collections.OrderedDict(state),
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(5)}}},
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "num_updates": 7}],
        "extra_state": {"epoch": 3, "metrics": [(0, "loss", "AverageMeter", {"val": 1.0})], "val_loss": 2.5},
    }
    torch.save(content | options(args, form), folder / "checkpoint_best.pt")
    (folder / "dict.de.txt").write_text(dictionary(sizes[0], name="x"))
    (folder / "dict.en.txt").write_text(dictionary(sizes[1], name="x" if shared else "y"))
    return folder / "checkpoint_best.pt", reference


def options(args, form):
    if form == "args":
        return {"args": argparse.Namespace(**args)}
    task = {"_name": "translation", "source_lang": "de", "target_lang": "en"}
    if form == "namespace":
        return {"args": None, "cfg": {"model": argparse.Namespace(**args), "task": task}}
    flat = {key: value for key, value in args.items() if not key.startswith(("encoder_", "decoder_", "arch"))}
    nested = {
        stack: {key.removeprefix(f"{stack}_"): value for key, value in args.items() if key.startswith(f"{stack}_")}
        for stack in ("encoder", "decoder")
    }
    return {"args": None, "cfg": {"model": {"_name": "transformer", **flat, **nested}, "task": task}}


@pytest.mark.parametrize("name", VARIANTS)
def test_it_computes_what_fairseq_does(tmp_path, name):
    path, reference = saved(tmp_path, **VARIANTS[name])
    sizes = (SIZES[0],) * 2 if name == "shared" else SIZES
    check(load(path), reference, size=sizes, least=4)


@pytest.mark.parametrize("form", ["namespace", "plain"])
def test_options_in_other_forms_and_the_folder_that_is_written(tmp_path, form):
    path, reference = saved(tmp_path / "theirs", form=form, **VARIANTS["pre"])
    save(opening.preview(path).parts, tmp_path / "ours", dtype=torch.float32)
    for checkpoint in (load(path), load(tmp_path / "ours")):
        check(checkpoint, reference, size=SIZES, least=4)
        assert checkpoint.model.config.decoder_start_id == checkpoint.model.config.eos_id == 2
        assert checkpoint.src_tokenizer.encode("x3@@ nothing </s>").ids == (7, 3, 2)
        assert checkpoint.tgt_tokenizer.decode([2, 6, 5]) == "y2@@ y1@@"


def packed(state):
    """Names of versions before 0.7: queries, keys and values as one, norms by number, the output alone."""
    made = {}
    for name, value in state.items():
        if found := re.fullmatch(r"(.*attn\.)q_proj\.(weight|bias)", name):
            three = [state[f"{found[1]}{one}_proj.{found[2]}"] for one in "qkv"]
            made[f"{found[1]}in_proj_{found[2]}"] = torch.cat(three)
        elif re.search(r"attn\.[kv]_proj", name):
            continue
        elif found := re.fullmatch(r"(.*layers\.\d+\.)(self_attn|encoder_attn|final)_layer_norm(.*)", name):
            decoder = name.startswith("decoder")
            number = {"self_attn": 0, "encoder_attn": 1, "final": 1 + decoder}[found[2]]
            made[f"{found[1]}layer_norms.{number}{found[3]}"] = value
        else:
            made["decoder.embed_out" if "output_projection" in name else name] = value
    return made


def twice(state):
    """Version 0.12 saves some tensors a second time, under the names of an encoder that is fast."""
    names = [f"encoder.layers.{i}.{name}" for i in (0, 1) for name in ("in_proj_weight", "fc1_bias")]
    return state | {name: torch.zeros(3) for name in names}


@pytest.mark.parametrize("rename", [packed, twice])
def test_names_of_other_versions(tmp_path, rename):
    path, reference = saved(tmp_path, rename=rename)
    check(load(path), reference, size=SIZES, least=4)


REFUSED = {
    "fconv": {"arch": "fconv_iwslt_de_en"},
    "multilingual_translation": {"task": "multilingual_translation"},
    "adaptive_softmax_cutoff": {"adaptive_softmax_cutoff": "100,200"},
    "decoder_normalize_before": {"decoder_normalize_before": True},
    "no_decoder_final_norm": VARIANTS["pre"] | {"no_decoder_final_norm": True},
    "cross_self_attention": {"cross_self_attention": True},
    "encoder_layers_to_keep": {"encoder_layers_to_keep": "0,1"},
    "decoder_output_dim": {"decoder_output_dim": 6},
    "encoder_of_tomorrow": {"encoder_of_tomorrow": 3},
    "activation_fn": {"activation_fn": "tanh"},
    "encoder_learned_pos": {"encoder_learned_pos": "yes"},
    "n_decoder_heads: found 5, expected a divisor of 12": {"decoder_attention_heads": 5},
}


def say_otherwise(path, changes):
    content = torch.load(path, weights_only=False)
    torch.save(content | {"args": argparse.Namespace(**ARGS | changes)}, path)


def test_tensors_and_lists_that_do_not_fit_are_named(tmp_path):
    path, _ = saved(tmp_path / "more", rename=lambda state: state | {"encoder.layers.0.scale": torch.ones(3)})
    refusal(lambda: opening.preview(path), r"encoder\.layers\.0\.scale")
    path, _ = saved(tmp_path / "list")
    for text, message in (
        (dictionary(200, name="y"), "200 tokens, but its embedding table has 19 rows"),
        ("the 5\nnothing\n", r"dict\.en\.txt: line 2"),
    ):
        (path.parent / "dict.en.txt").write_text(text)
        refusal(lambda: opening.preview(path), message)
    (path.parent / "dict.en.txt").unlink()
    report = opening.preview(path).report
    assert report.can_be_written
    assert any("dict.de.txt, dict.en.txt" in note for note in report.notes)
    assert load(path).src_tokenizer.encode("7 8").ids == (7, 8)
