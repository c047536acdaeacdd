"""One module per command of `python -m transformer`: `add(parser)` declares its options and what runs it."""
