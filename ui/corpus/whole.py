"""The scores of the whole corpus, each with its interval."""
