"""The page Training: the learning curves with the snapshots on them, and what a sentence came to over training."""
