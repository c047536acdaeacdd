"""Code for readers to copy: what makes a file of maps, as docs/opening.md has it."""

from typing import Final

EXAMPLE: Final = """\
inputs = tokenizer("The cat sat on the mat.", return_tensors="pt")
output = model(**inputs, output_attentions=True)
tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
weights = torch.stack([layer[0] for layer in output.attentions]).float().numpy(force=True)
np.savez_compressed("cat.npz", encoder_weights=weights, encoder_queries=tokens, encoder_keys=tokens)"""
