"""Parts of the Attention page: all heads, and one map in full."""
