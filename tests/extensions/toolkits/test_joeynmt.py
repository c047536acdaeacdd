"""A checkpoint of Joey NMT's opens with the config beside it, and computes what Joey NMT computes."""

import json

import pytest
import torch
import yaml

from glassformer.extensions.importers.library import opening
from tests.extensions.refusing import refusal
from tests.extensions.toolkits.plain import check
from tests.extensions.toolkits.references import joey_nmt
from tests.extensions.toolkits.test_opennmt import table
from transformer.checkpoint.opening import load

SIZES = (23, 19)
STACK = {
    "type": "transformer", "num_heads": 3, "embeddings": {"embedding_dim": 12, "scale": True, "dropout": 0.0},
    "hidden_size": 12, "ff_size": 20, "dropout": 0.3,
}  # fmt: skip
MODEL = {
    "initializer": "xavier_uniform", "embed_initializer": "normal", "tied_embeddings": False, "tied_softmax": False,
    "encoder": STACK | {"num_layers": 2}, "decoder": STACK | {"num_layers": 3},
}  # fmt: skip


def changed(both=None, encoder=None, decoder=None, **more):
    """The model's part with other values: for both stacks, for one, or beside them."""
    model = json.loads(json.dumps(MODEL | more))  # each part by itself, as YAML writes what is shared as an alias
    for stack, own in (("encoder", encoder), ("decoder", decoder)):
        for values in (both or {}, own or {}):
            embeddings = model[stack]["embeddings"] | values.get("embeddings", {})
            model[stack] |= values | {"embeddings": embeddings}
    return model


PRE, POST = {"layer_norm": "pre"}, {"layer_norm": "post"}
VARIANTS = {
    "version 1": ("pre", {}),
    "pre": ("pre", {"both": PRE | {"activation": "gelu", "alpha": 1.0}}),
    "post": ("post", {"both": POST | {"activation": "swish"}}),
    "unscaled": ("post", {"both": POST | {"embeddings": {"scale": False}}}),
    "narrow decoder": ("pre", {"both": PRE, "decoder": {"num_heads": 4, "ff_size": 8}}),
    "tied": ("pre", {"both": PRE, "tied_softmax": True}),
    "shared": ("pre", {"both": PRE, "tied_embeddings": True, "tied_softmax": True}),
}


def saved(folder, *, norms="pre", special=None, extra=None, **values):
    model = changed(**values)
    shared = model["tied_embeddings"]
    sizes = (SIZES[0],) * 2 if shared else SIZES
    reference = joey_nmt(model, sizes, norms)
    pe = table({}).transpose(0, 1)
    state = reference.state | {"encoder.pe.pe": pe, "decoder.pe.pe": pe.clone()} | (extra or {})
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "model_state": state, "optimizer_state": {"state": {0: {"exp_avg": torch.zeros(2)}}},
        "train_iter_state": torch.zeros(16, dtype=torch.uint8), "stats_state": {"steps": 10, "best_ckpt_score": 1.0},
    }  # fmt: skip
    torch.save(content, folder / "best.ckpt")
    data = {"train": "data/train", "src": {"lang": "de"}, "special_symbols": special or {}}
    config = {"name": "small", "data": data, "training": {"epochs": 3}, "model": model}
    (folder / "config.yaml").write_text("# settings\n" + yaml.safe_dump(config))
    for side, size in zip(("src", "trg"), sizes, strict=True):
        names = ["<unk>", "<pad>", "<s>", "</s>", *(f"{'x' if shared else side}{i}" for i in range(4, size))]
        (folder / f"{side}_vocab.txt").write_text("\n".join(names) + "\n")
    return folder / "best.ckpt", reference


@pytest.mark.parametrize("name", VARIANTS)
def test_it_computes_what_joey_does(tmp_path, name):
    norms, values = VARIANTS[name]
    path, reference = saved(tmp_path, norms=norms, **values)
    checkpoint = load(path)
    check(checkpoint, reference, size=(SIZES[0],) * 2 if name == "shared" else SIZES, least=4)
    config = checkpoint.model.config
    assert (config.pad_id, config.unk_id, config.decoder_start_id, config.eos_id) == (1, 0, 2, 3)


REFUSED = {
    "encoder.type": {"encoder": {"type": "recurrent"}},
    "decoder.alpha": {"decoder": {"alpha": 0.8}},
    "decoder.layer_norm": {"encoder": PRE, "decoder": POST},
    "encoder.embeddings.embedding_dim": {"both": {"embeddings": {"embedding_dim": 6}}},
    "decoder.embeddings.scale": {"decoder": {"embeddings": {"scale": False}}},
    "encoder.activation": {"both": {"activation": "tanh"}},
    "encoder.of_tomorrow": {"encoder": {"of_tomorrow": 1}},
}


def say_otherwise(path, changes):
    config = yaml.safe_load((path.parent / "config.yaml").read_text())
    (path.parent / "config.yaml").write_text(yaml.safe_dump(config | {"model": changed(**changes)}))


def test_a_config_that_is_missing_none_or_does_not_say_where_norms_stand(tmp_path):
    path, _ = saved(tmp_path, norms="post")
    refusal(lambda: opening.preview(path), r"encoder\.layer_norm")
    for text in ("model: 5", "a: [", "model: {encoder: {}}", "- 1"):
        (tmp_path / "config.yaml").write_text(text)
        refusal(lambda: opening.preview(path), r"config\.yaml")
    (tmp_path / "config.yaml").unlink()
    refusal(lambda: opening.preview(path), r"config\.yaml is not next to it")
    path, _ = saved(tmp_path, special={"lang_tags": ["<de>"]})
    refusal(lambda: opening.preview(path), "lang_tags")
    path, _ = saved(tmp_path)
    (tmp_path / "src_vocab.txt").unlink()  # texts are ids then, and the special ones are the config's
    checkpoint = load(path)
    assert checkpoint.src_tokenizer.encode("7 8").ids == (7, 8)
    assert checkpoint.model.config.decoder_start_id == 2


def test_a_table_of_positions_of_another_shape_is_refused_by_name(tmp_path):
    for shape in ((0, 5000, 12), (60000,), (5000, 11)):
        path, _ = saved(tmp_path, extra={"encoder.pe.pe": torch.zeros(shape)})
        said = r"encoder\.(pe\.pe|embedding\.positions\.table)"
        refusal(lambda path=path: opening.preview(path), said)
