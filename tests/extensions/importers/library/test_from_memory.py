"""A model in memory is a checkpoint and shows itself, whether it is ours, one of transformers, or of a tutorial."""

import numpy as np
import torch
import transformers

import transformer


def test_a_model_of_transformers_has_its_own_logits():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
        max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).eval()
    checkpoint = transformer.from_memory(model, name="mine")
    trace = checkpoint.run("5 9 12")
    ids = torch.tensor([list(trace.src_ids)])
    with torch.no_grad():
        own = model(ids, output_attentions=True).attentions
    assert checkpoint.name == "mine"
    assert np.abs(trace.maps("encoder") - torch.cat(own).numpy()).max() < 1e-5
    assert "iframe" in transformer.show(model, None, "5 9 12")._repr_html_()


def test_a_model_of_ours_is_read_as_it_is_now(checkpoint_folder):
    loaded = transformer.load(checkpoint_folder)
    tokenizers = loaded.src_tokenizer, loaded.tgt_tokenizer
    before = transformer.from_memory(loaded.model, tokenizers)
    assert before.run("ba lo").output_text == loaded.run("ba lo").output_text
    with torch.no_grad():
        next(loaded.model.parameters()).add_(1.0)
    assert transformer.from_memory(loaded.model, tokenizers) != before
