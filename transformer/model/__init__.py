"""The Transformer, written to be read: from the config to the logits."""
