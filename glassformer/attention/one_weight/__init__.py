"""Part of the Attention page: how one weight came to be."""
