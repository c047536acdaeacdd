"""BERT, RoBERTa and DistilBERT folders: the numbers of transformers."""

import pytest
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from tests.transformer.importers.huggingface.parity import change_config, compare, opened, saved, tiny
from tests.transformer.text import foreign
from transformer.errors import CheckpointError
from transformer.importers.huggingface.folder import import_folder

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}


def bert(**changes):
    return tiny(BertForMaskedLM, BertConfig(**(SIZES | {"hidden_act": "gelu_new"} | changes)))


def test_bert_as_it_is_saved_now(tmp_path):
    model = bert()
    ours = opened(saved(model, tmp_path / "m"))
    assert (ours.config.mlm_head, ours.config.mlm_activation, ours.config.n_token_types) == (True, "gelu_tanh", 2)
    compare(model, ours, pad=0)


def test_bert_with_its_tokenizer(tmp_path):
    """A text stands between [CLS] and [SEP], which are the ids of its start and end."""
    files = foreign.word_pieces()
    names = files["vocab.txt"].decode().split()
    folder = saved(bert(vocab_size=len(names) + 3), tmp_path / "m")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    ours = opened(folder)
    pieces = ours.run("The quick fox").src_pieces
    assert (pieces[0], pieces[-1]) == ("[CLS]", "[SEP]")
    assert [names[i] for i in (ours.config.bos_id, ours.config.eos_id, ours.config.unk_id)] == [
        "[CLS]", "[SEP]", "[UNK]"]  # fmt: skip


def test_bert_without_a_head(tmp_path):
    model = tiny(BertModel, BertConfig(**SIZES))
    ours = opened(saved(model, tmp_path / "m"))
    assert not ours.config.mlm_head
    compare(model, ours, pad=0)


def test_roberta(tmp_path):
    """Positions that begin behind the padding's id; the head has exact GELU although the layers have ReLU."""
    model = tiny(
        RobertaForMaskedLM,
        RobertaConfig(**(SIZES | {"type_vocab_size": 1, "hidden_act": "relu", "layer_norm_eps": 1e-5})),
    )
    ours = opened(saved(model, tmp_path / "m"))
    assert (ours.config.max_len, ours.config.mlm_activation, ours.config.activation) == (30, "gelu", "relu")
    compare(model, ours, pad=1)


def test_distilbert(tmp_path):
    config = DistilBertConfig(vocab_size=61, dim=24, n_layers=3, n_heads=4, hidden_dim=40, max_position_embeddings=32)
    model = tiny(DistilBertForMaskedLM, config)
    ours = opened(saved(model, tmp_path / "m"))
    assert ours.config.n_token_types == 0
    compare(model, ours, pad=0)


VARIANTS = {
    "own table": (BertForMaskedLM, BertConfig, SIZES | {"tie_word_embeddings": False, "type_vocab_size": 3}),
    "other padding": (RobertaForMaskedLM, RobertaConfig, SIZES | {"pad_token_id": 3, "hidden_act": "silu"}),
    "sinusoids": (DistilBertForMaskedLM, DistilBertConfig, {
        "vocab_size": 61, "dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 32,
        "activation": "relu", "sinusoidal_pos_embds": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(tmp_path, name):
    kind, config, sizes = VARIANTS[name]
    model = tiny(kind, config(**sizes))
    ours = opened(saved(model, tmp_path / "m"))
    assert ours.config.tie_output == (name != "own table")
    compare(model, ours, pad=model.config.pad_token_id)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("position_embedding_type", "relative_key"),
        ("pruned_heads", {"0": [1]}),
        ("hidden_act", "gelu_10"),
    ],
)
def test_what_would_compute_something_else_is_refused(tmp_path, key, value):
    folder = saved(bert(), tmp_path / "m")
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)
