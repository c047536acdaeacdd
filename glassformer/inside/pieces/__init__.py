"""Part of the Inside page: the tables of embeddings."""
