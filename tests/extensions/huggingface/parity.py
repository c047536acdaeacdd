"""Tiny random models of transformers, the folders that they are saved in, and a comparison with ours."""

import json
import os
import re

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from safetensors.torch import load_file, save_file

from glassformer.extensions.huggingface.folder import import_folder
from transformer.checkpoint.load import load
from transformer.checkpoint.save import save
from transformer.tap import Recorder, tap_of

transformers.utils.logging.disable_progress_bar()
re._MAXCACHE = 5_000  # for each folder transformers compiles the same 600 patterns, of which Python keeps 512

LENGTH, PADDING = 22, 5  # most tokens of the rows of a batch; those of the second that are padding
KINDS = {
    "encoder_attentions": "encoder.{}.self_attn.weights",
    "decoder_attentions": "decoder.{}.self_attn.weights",
    "cross_attentions": "decoder.{}.cross_attn.weights",
}
CLOSE = 1e-4


@torch.no_grad()
def tiny(kind, config, *, seed=0):
    """A model with random values: norms around 1, every bias at random."""
    torch.manual_seed(seed)
    config._attn_implementation = "eager"  # the only one that gives attentions
    model = kind(config).eval().float()
    for name, value in [*model.named_parameters(), ("final_logits_bias", getattr(model, "final_logits_bias", None))]:
        if value is None or name.endswith("embed_positions.weight"):
            continue
        if value.dim() == 1 and name.endswith("weight"):
            value.copy_(1 + 0.3 * torch.randn_like(value))
        elif value.dim() == 1 or name == "final_logits_bias":
            value.copy_(0.3 * torch.randn_like(value))
        else:
            value.copy_(torch.randn_like(value) * (0.3 if "embed" in name or "wte" in name else value.size(-1) ** -0.5))
    return model


def saved(model, folder, **generation):
    """The folder that transformers writes, with these settings of generation."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def change(folder, *, rename=lambda name: name, dtype=None, extra=None, shards=1, config=None, drop=()):
    """Make a folder look like those of the hub: other names and keys, 16 bits, several files.

    `extra` are further tensors, or what makes them of those that there are.
    """
    state = load_file(folder / "model.safetensors")
    state = {rename(name): value.to(dtype or value.dtype).contiguous() for name, value in state.items()}
    more = extra(state) if callable(extra) else extra or {}
    state |= {name: value.clone() for name, value in more.items()}
    (folder / "model.safetensors").unlink()
    if shards == 1:
        save_file(state, folder / "model.safetensors")
    else:
        names = sorted(state)
        files = {f"model-{i + 1:05}-of-{shards:05}.safetensors": names[i::shards] for i in range(shards)}
        for file, own in files.items():
            save_file({name: state[name] for name in own}, folder / file)
        index = {"metadata": {}, "weight_map": {name: file for file, own in files.items() for name in own}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    change_config(folder, drop=drop, **(config or {}))
    return folder


def change_config(folder, *, drop=(), **values):
    path = folder / "config.json"
    record = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in record.items() if key not in drop}))


def opened(folder, **answers):
    """The checkpoint that is made of a folder, by way of the disk."""
    imported = import_folder(folder, answers=answers)
    assert imported.report.can_be_written
    assert not imported.report.missing
    native = folder.parent / f"{folder.name} of ours"
    save(imported.parts, native, dtype=torch.float32)
    return load(native)


def batch(vocabulary, pad, *, seed=1, length=LENGTH):
    """Ids and their mask; the second row is padded."""
    torch.manual_seed(seed)
    ids = torch.randint(5, vocabulary - 10, (2, length))  # the last ids of some are padding
    mask = torch.ones_like(ids)
    mask[1, length - PADDING :] = 0
    return (ids if pad is None else ids.masked_fill(mask == 0, pad)), mask


@torch.no_grad()
def compare(theirs, ours, *, pad):
    """Logits and all maps of a padded batch, of tokens that are no padding."""
    config, model = ours.config, ours.model
    length = min(LENGTH, config.max_len - 3)
    source, mask = batch(config.src_vocab_size, pad, length=length)
    both = bool(config.n_encoder_layers and config.n_decoder_layers)
    target = batch(config.tgt_vocab_size, None, seed=2, length=length + 3)[0]
    more = {"decoder_input_ids": target} if both else {}
    expected = theirs(input_ids=source, attention_mask=mask, output_attentions=True, **more)
    recorder = Recorder(["*weights"])
    alone = {} if both or config.n_encoder_layers else {"tgt_ids": source}
    found = model(source, alone.get("tgt_ids", target), tap=tap_of(recorder))
    real = torch.ones_like(target, dtype=torch.bool) if both else mask.bool()
    logits = expected.logits if "logits" in expected else expected.last_hidden_state
    assert logits.abs().max() > 0.5
    assert (logits - found)[real].abs().max() < CLOSE
    compared = 0
    for kind, site in _kinds(expected, both=both, encoder=config.n_encoder_layers > 0).items():
        for i, weights in enumerate(expected[kind]):
            queries = (torch.ones_like(target) if site.startswith("decoder") and both else mask).bool()
            difference = (weights - recorder.values[site.format(i)]).transpose(1, 2)[queries]
            assert difference.abs().max() < CLOSE, site.format(i)
            compared += 1
    assert compared == config.n_encoder_layers + config.n_decoder_layers * (1 + both)


def _kinds(expected, *, both, encoder):
    if both:
        return KINDS
    return {"attentions": KINDS["encoder_attentions" if encoder else "decoder_attentions"]}


def sources_of(ours, n=4, shortest=6):
    """Sources or prompts of several lengths, without padding."""
    return [batch(ours.config.src_vocab_size, None, seed=seed)[0][:1, : shortest + seed] for seed in range(n)]


@torch.no_grad()
def written_by(theirs, source, *, new, pad=None, **settings):
    """What `generate` writes greedily with the settings of its folder, cut where ours is; nothing writes padding."""
    own, both = theirs.generation_config, theirs.config.is_encoder_decoder
    before = 1 if both else source.size(1)
    limit = {"max_length": min(before + new, own.max_length or before + new)}
    if own.max_new_tokens:
        limit = {"max_new_tokens": min(new, own.max_new_tokens)}
    banned = [*(own.bad_words_ids or []), *([] if pad is None else [[pad]])]
    fill = {} if own.pad_token_id is not None else {"pad_token_id": 0}
    settings = limit | fill | ({"bad_words_ids": banned} if banned else {}) | settings
    return theirs.generate(source, num_beams=1, do_sample=False, **settings)[0, before:].tolist()


def compare_greedy(theirs, ours, *, new=14, n=4, **settings):
    """What both write, for a few sources."""
    for source in sources_of(ours, n):
        new = min(new, ours.config.max_len - 1 - (0 if theirs.config.is_encoder_decoder else source.size(1)))
        query = ours.query(" ".join(map(str, source[0].tolist())), max_new=new)
        expected = written_by(theirs, source, new=new, pad=ours.config.pad_id, **settings)
        assert list(ours.run(query).tgt_ids) == expected
