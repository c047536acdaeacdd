"""Training: from a file of sentence pairs to a checkpoint folder. Needs the extra `train`."""
