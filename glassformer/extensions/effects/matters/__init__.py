"""The page What matters: what the output owes to each head and piece, and what adds to a logit."""
