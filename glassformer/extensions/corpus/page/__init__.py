"""The page Over a corpus: what a model and its heads do over many sentences, from what a corpus run has kept."""
