"""A room in the browser: its connection, and how many are there."""
