"""The table of well-known models has what transformers builds of the same sizes, and the address opens it.

The Checkpoints page lists exactly the families of Hugging Face's folders that open.
"""

import torch
import transformers
from transformers import AutoConfig

from glassformer.extensions.huggingface.folder import FAMILIES
from glassformer.extensions.huggingface.known_models import known_models, made_of
from tests.pages.conftest import CHECKPOINTS, INSIDE
from tests.pages.reading import address
from tests.pages.test_checkpoints import unescaped
from transformer.model.config import ModelConfig

SIZES = {
    "BERT": (transformers.BertForMaskedLM, "bert", {}),
    "GPT-2": (transformers.GPT2LMHeadModel, "gpt2", {}),
    "T5": (transformers.T5ForConditionalGeneration, "t5",
           {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "BART": (transformers.BartForConditionalGeneration, "bart",
             {"d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072,
              "decoder_ffn_dim": 3072, "encoder_attention_heads": 12, "decoder_attention_heads": 12}),
    "LLaMA": (transformers.LlamaForCausalLM, "llama", {}),
}  # fmt: skip
PUBLISHED = {"BERT": 109_514_298, "GPT-2": 124_439_808, "T5": 222_903_552, "BART": 139_420_416, "LLaMA": 6_738_415_616}
UNUSED = {"BART": 2 * 2 * 768}  # rows of its two tables of positions that no position has


def test_each_has_as_many_parameters_as_transformers_gives_a_model_of_its_defaults():
    assert list(known_models()) == list(SIZES)
    for name, (kind, family, sizes) in SIZES.items():
        with torch.device("meta"):
            built = kind(AutoConfig.for_model(family, **sizes))
        assert sum(one.numel() for one in built.parameters()) == PUBLISHED[name]
        assert known_models()[name].count_parameters() == PUBLISHED[name] - UNUSED.get(name, 0), name


def cells(name):
    return {str(about): str(text) for about, text in made_of(known_models()[name]).items()}


PAPERS = {  # of BERT, GPT-2, T5, BART and LLaMA
    "Norm": ["LayerNorm, post-norm", "LayerNorm, pre-norm", "RMSNorm, pre-norm", "LayerNorm, post-norm",
             "RMSNorm, pre-norm"],
    "Feed-forward": ["GELU", "GELU (tanh)", "ReLU", "GELU", "SwiGLU"],
    "Biases": ["yes", "yes", "no", "yes", "no"],
}  # fmt: skip


def test_what_their_papers_say():
    made = [cells(name) for name in known_models()]
    assert {about: [one[about] for one in made] for about in PAPERS} == PAPERS
    bert, gpt, t5, _, llama = made
    assert bert["Who sees whom"] == "encoder: all"
    assert gpt["Who sees whom"] == llama["Who sees whom"] == "decoder: earlier tokens"
    assert t5["Who sees whom"] == "encoder: all; decoder: earlier tokens; decoder: the source"
    assert llama["Output layer"] == "a table of its own"


def test_a_model_that_gives_no_logits_or_has_a_gate_of_another_kind_is_described():
    sizes = {"d_model": 8, "n_heads": 4, "d_ff": 16, "src_vocab_size": 9, "tgt_vocab_size": 9, "max_len": 4}
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "decoder_start_id": 1, "unk_id": None, "shared_vocab": True}
    config = ModelConfig(**sizes, **ids, n_encoder_layers=1, n_decoder_layers=0, gated=True, activation="relu",
                         norm_kind="none", n_kv_heads=2)  # fmt: skip
    made = {str(about): str(text) for about, text in made_of(config).items()}
    assert (made["Output layer"], made["Norm"], made["Feed-forward"]) == ("none", "no norms", "gated")
    assert made["Heads"] == "4 heads of width 2 that share 2 key-value heads"


def test_the_address_opens_the_table(open_page):
    def tables(test):
        return [one.value for one in test.table if "LLaMA" in one.value.columns]

    assert not tables(open_page(INSIDE, model="reverse"))
    test = open_page(INSIDE, model="reverse", families="1")
    (table,) = tables(test)
    assert list(table.columns) == ["This model", *SIZES]
    assert table.loc["Norm"]["T5"] == "RMSNorm, pre-norm"
    assert address(test)["families"] == "1"


def test_the_families_that_open_are_those_of_the_code(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    (families,) = [one.value.iloc[:, 0] for one in test.table if "GPT-2" in one.value.index]
    said = ", ".join(unescaped(kinds) for kinds in families)
    assert sorted(said.split(", ")) == sorted(FAMILIES)
