"""Many sentences run one after the other, and a table of them."""
