"""The page Inside the model: the diagram, the residual stream, the logit lens, feed-forward, embeddings."""
