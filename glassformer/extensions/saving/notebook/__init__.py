"""A run outside of the app: in a notebook, and a picture of it in a file."""
