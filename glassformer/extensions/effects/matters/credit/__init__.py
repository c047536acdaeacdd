"""Parts of the page What matters: what the output owes to each piece, and a logit to each part of the model."""
