"""The slider over the training of a checkpoint."""
