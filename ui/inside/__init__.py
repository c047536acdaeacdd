"""The page Inside the model: the diagram, residual stream, logit lens, feed-forward, embeddings, speed-ups."""
