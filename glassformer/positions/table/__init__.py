"""Parts of the Positions page: a table of positions, who resembles whom in it, what a shift does."""
