"""The Transformer itself, to be read: what it is made of, from its config to its logits."""
