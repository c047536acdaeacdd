"""Files of strangers: read whole or not at all, each within a limit."""
