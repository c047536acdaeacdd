"""BERT, RoBERTa and DistilBERT folders: what their config says, their tokenizer and head, and refusals."""

import pytest
from transformers import BertConfig, BertModel

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.extensions.huggingface.library.parity import change_config, compare, opened, saved, tiny
from tests.extensions.huggingface.library.tiny_families import FAMILIES, model_of
from tests.extensions.tokenizers import foreign
from transformer.errors import CheckpointError


@pytest.mark.parametrize(
    ("family", "variant", "said"),
    [
        ("bert", "tanh", {"mlm_head": True, "mlm_activation": "gelu_tanh", "n_token_types": 2, "tie_output": True}),
        ("bert", "own table", {"tie_output": False}),
        # Positions that begin behind the padding's id; the head has exact GELU although the layers have ReLU.
        ("roberta", "relu", {"max_len": 62, "mlm_activation": "gelu", "activation": "relu"}),
        ("roberta", "other padding", {"tie_output": True}),
        ("distilbert", "sinusoids", {"n_token_types": 0, "tie_output": True}),
    ],
)
def test_what_a_config_says(tmp_path, family, variant, said):
    config = opened(saved(model_of(family, variant), tmp_path / "m")).config
    assert {name: getattr(config, name) for name in said} == said


def test_bert_with_its_tokenizer(tmp_path):
    """A text stands between [CLS] and [SEP], which are the ids of its start and end."""
    files = foreign.word_pieces()
    names = files["vocab.txt"].decode().split()
    folder = saved(model_of("bert", vocab_size=len(names) + 3), tmp_path / "m")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    ours = opened(folder)
    pieces = ours.run("The quick fox").src_pieces
    assert (pieces[0], pieces[-1]) == ("[CLS]", "[SEP]")
    assert [names[i] for i in (ours.config.bos_id, ours.config.eos_id, ours.config.unk_id)] == [
        "[CLS]", "[SEP]", "[UNK]"]  # fmt: skip


def test_bert_without_a_head(tmp_path):
    model = tiny(BertModel, BertConfig(**FAMILIES["bert"].variants["tanh"]))
    ours = opened(saved(model, tmp_path / "m"))
    assert not ours.config.mlm_head
    compare(model, ours, pad=0)


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
    folder = saved(model_of("bert"), tmp_path / "m")
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)
