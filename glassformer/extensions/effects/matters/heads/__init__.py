"""Part of the page What matters: what the output owes to each head."""
