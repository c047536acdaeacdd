"""The page What goes wrong: a card a mistake, as data."""
