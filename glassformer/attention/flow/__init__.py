"""Part of the Attention page: the flow view."""
