"""Parts of the Positions page: positions that act inside attention."""
