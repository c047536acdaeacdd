"""Session state and its URL query parameters."""
