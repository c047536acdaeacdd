"""The Transformer itself, written to be read: its parts, from the config to the logits."""
