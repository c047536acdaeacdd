"""A config.json with keys dropped, nulled, moved or spelt otherwise computes as transformers, or is refused.

Each case takes a tiny random model, changes its config.json, lets both programs read the folder, and compares logits
and greedy output. What the library itself cannot open or run says nothing.
"""

import functools
import json
import random

import pytest
import torch

from glassformer.extensions.huggingface.folder import import_folder
from tests.extensions.huggingface.parity import CLOSE, written_by
from tests.extensions.huggingface.tiny_families import FAMILIES, model_of
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError

# Tokens that are read, those that a text begins with, and the most where no table of positions ends.
LENGTH, PROMPT, WRITTEN = 13, 5, 24
LINEAR, YARN = {"rope_type": "linear", "factor": 3.0}, {"rope_type": "yarn", "factor": 4.0}
LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SPELLINGS = (
    {"rope_theta": 77.0}, {"rope_theta": None}, {"rotary_emb_base": 33}, {"rope_local_base_freq": 22.0},
    {"rope_scaling": {}}, {"rope_scaling": None}, {"rope_scaling": LINEAR}, {"rope_scaling": YARN},
    {"rope_scaling": LLAMA_3}, {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "default", "rope_theta": 44.0}}, {"rope_scaling": LINEAR | {"rope_theta": 44.0}},
    {"rope_scaling": YARN | {"mscale": 0.7, "mscale_all_dim": 0.3}}, {"rope_scaling": YARN | {"truncate": False}},
    {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    {"rope_parameters": None}, {"rope_parameters": {}}, {"rope_parameters": LINEAR},
    {"rope_parameters": LINEAR | {"rope_theta": 55.0}}, {"rope_parameters": {"rope_theta": 55.0}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 55.0, "partial_rotary_factor": 0.5}},
    {"rope_parameters": {"full_attention": LINEAR, "sliding_attention": {"rope_theta": 11.0}}},
    {"partial_rotary_factor": 0.5}, {"rotary_pct": 0.5}, {"original_max_position_embeddings": 8},
    {"max_position_embeddings": 40},
)  # fmt: skip
SWITCHES = (
    {"sliding_window": 1}, {"sliding_window": 3}, {"sliding_window": None}, {"use_sliding_window": True},
    {"use_sliding_window": False}, {"max_window_layers": 0}, {"layer_types": ["sliding_attention", "full_attention"]},
    {"layer_types": ["sliding_attention"] * 2}, {"no_rope_layers": [0, 1]}, {"no_rope_layer_interval": 1},
    {"sliding_window_pattern": 2}, {"hidden_act": "gelu"}, {"hidden_activation": "silu"},
    {"activation_function": "gelu"}, {"feed_forward_proj": "relu"}, {"feed_forward_proj": "gated-silu"},
    {"dense_act_fn": "silu"}, {"is_gated_act": False}, {"scale_decoder_outputs": False},
    {"tie_word_embeddings": False}, {"tie_word_embeddings": True}, {"scale_embedding": True},
    {"scale_embedding": None}, {"use_parallel_residual": False}, {"scale_attn_weights": False},
    {"query_pre_attn_scalar": 4}, {"attn_logit_softcapping": 1.0}, {"final_logit_softcapping": 1.0},
    {"relative_attention_max_distance": 6}, {"layer_norm_eps": 1e-2}, {"rms_norm_eps": 1e-2},
    {"layer_norm_epsilon": 1e-2}, {"normalize_before": True}, {"pad_token_id": 5}, {"eos_token_id": [3, 4]},
    {"decoder_start_token_id": 5}, {"decoder_start_token_id": None}, {"forced_bos_token_id": 5},
    {"no_repeat_ngram_size": 2}, {"repetition_penalty": 1.7}, {"suppress_tokens": [4, 5]}, {"min_length": 6},
    {"num_heads": 1}, {"n_head": 1}, {"num_attention_heads": 1}, {"decoder_attention_heads": 1},
)  # fmt: skip
# In what concerns how a text is written, or positions that only a longer text reaches.
WRITING = ("token", "id", "length", "ngram", "penalty", "suppress", "rope", "rotary", "window", "layer", "position")
KEPT = ("model_type", "architectures", "transformers_version")  # what says which model it is


def variants(name, record):
    """What is changed, and the changed config; some by chance, the same ones in every run."""
    draw = random.Random(name)
    for gone in record:
        if gone not in KEPT:
            yield f"without {gone}", {key: value for key, value in record.items() if key != gone}
            yield f"null {gone}", record | {gone: None}
    changes = [one for one in SWITCHES if set(one) & set(record)] + [{"forced_bos_token_id": 5}]
    yield from ((str(one), record | one) for one in changes)
    if "rope_parameters" in FAMILIES[name].config().to_dict():
        bare = {key: value for key, value in record.items() if key != "rope_parameters"}
        for one in SPELLINGS:
            bases = (record, bare) if name == "llama" else (draw.choice((record, bare)),)
            yield from ((str(one), base | one) for base in bases)
        for number in range(10):
            mixed = [one for several in draw.sample(SPELLINGS, 2) for one in several.items()]
            yield f"mixed {number}", draw.choice((record, bare)) | dict(mixed)


@functools.cache
def families_of():
    """Each change, and the families whose config can have it."""
    found = {}
    for name, row in FAMILIES.items():
        record = row.config(**row.sizes).to_diff_dict()
        for change in dict(variants(name, record)):
            found.setdefault(change, []).append(name)
    return found


def is_tried(change, name):
    """Whether a change is tried with a family whenever tests run: most are with one; a key is null there, or gone."""
    kind, _, key = change.partition(" ")
    if kind in ("null", "mixed", "without") and (sum(map(ord, key)) + (kind == "without")) % 2:
        return False
    names = families_of().get(change, [name])
    return name == names[len(change) % len(names)]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["some", "every"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_variant_is_equal_or_refused(tmp_path, name, every):
    kind, folder = FAMILIES[name].model, tmp_path / "m"
    model_of(name).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    record, compared, wrong = json.loads((folder / "config.json").read_text()), 0, []
    for change, variant in variants(name, record):
        if not (every or is_tried(change, name)):
            continue
        (folder / "config.json").write_text(json.dumps(variant))
        ours = ours_of(folder)
        theirs = None if ours is None else theirs_of(kind, folder)
        if ours is not None and theirs is not None:
            compared += 1
            said = difference(theirs, ours, written=every or any(word in change for word in WRITING))
            if said:
                wrong.append((dict(variant.items() ^ record.items()) if hashable(variant) else variant, said))
    assert not wrong, wrong[:3]
    assert compared > 15 * every  # the shortest config has 21 keys, most of which must be there or must not be null


def hashable(record):
    return not any(isinstance(value, dict | list) for value in record.values())


def ours_of(folder):
    """Our checkpoint; None where the folder is refused or a question is asked."""
    try:
        return load(folder)
    except CheckpointError:
        return None


def theirs_of(kind, folder):
    """The library's model; None where it cannot open the folder, or fills parameters in by chance."""
    try:
        model, how = kind.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    except Exception:
        return None
    return None if how["missing_keys"] or how["mismatched_keys"] else model.eval()


@torch.no_grad()
def difference(theirs, ours, *, written):
    """What differs, in words, also in what is written; None if nothing does, or the library cannot run its model."""
    source, target = (torch.randint(6, 25, (1, LENGTH), generator=torch.Generator().manual_seed(n)) for n in (1, 2))
    config = ours.config
    both = bool(config.n_encoder_layers and config.n_decoder_layers)
    try:
        expected = theirs(input_ids=source, **({"decoder_input_ids": target} if both else {})).logits
    except Exception:
        return None
    found = ours.model(source, target if both else (None if config.n_encoder_layers else source))
    if not (expected - found).abs().max() < CLOSE:
        return f"logits: {(expected - found).abs().max():.3g}"
    if not (written and config.n_decoder_layers):
        return None
    prompt = source[:, :PROMPT]
    new = min(config.max_len, WRITTEN) - (1 if both else PROMPT)
    try:
        wanted = written_by(theirs, prompt, new=new, pad=config.pad_id)
    except Exception:
        return None
    found = list(ours.run(ours.query(" ".join(map(str, prompt[0].tolist())), max_new=new)).tgt_ids)
    return None if found == wanted else f"written: {found}, expected {wanted}"


def test_what_is_dynamic_beyond_the_training_is_said(tmp_path):
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 500.0}
    model_of("llama", rope_parameters=rope).save_pretrained(tmp_path / "m")
    notes = " ".join(import_folder(tmp_path / "m").report.notes)
    assert "scaled dynamically: beyond 16 tokens" in notes
