"""Part of the Attention page: what heads do, measured."""
