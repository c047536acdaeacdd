"""The flow view in the browser: heads as lines between two columns of pieces."""
