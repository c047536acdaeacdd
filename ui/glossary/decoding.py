"""Terms of decoding: from scores to an output."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(say("logit", about="glossary"), say("The score of a piece before the softmax."), seen="model"),
    Term(
        say("probability distribution", about="glossary"),
        say("A probability for every piece; together they make 1."),
        seen="step",
        also=say("distribution", about="glossary"),
    ),
    Term(
        say("log-probability", about="glossary"),
        say("The logarithm of a probability; for a whole output they add up."),
        seen="beam",
    ),
    Term(say("candidate", about="glossary"), say("A piece that could come next."), seen="step"),
    Term(
        say("rank", about="glossary"),
        say("The place of a piece among the candidates, 1 for the most probable."),
        seen="lens",
    ),
    Term(
        say("entropy", about="glossary"),
        say("How unsure a distribution is: 0 if one piece is certain, more the more evenly it is spread."),
        seen="step",
    ),
    Term(
        say("bit", about="glossary"),
        say("The unit of entropy here; n bits are the doubt among 2ⁿ equally likely pieces."),
        seen="step",
    ),
    Term(
        say("temperature", about="glossary"),
        say("Divides the logits before the softmax: below 1 sharpens, above 1 flattens."),
        seen="sampling",
    ),
    Term(
        say("decoding", about="glossary"),
        say("Turning distributions into an output, one piece after the other."),
        seen="step",
    ),
    Term(
        say("decoding step", about="glossary"),
        say("The choice of one piece; step t reads piece t − 1 and predicts piece t."),
        seen="step",
    ),
    Term(
        say("autoregressive", about="glossary"),
        say("Each new piece is predicted from those already written."),
        seen="step",
    ),
    Term(
        say("greedy decoding", about="glossary"),
        say("Always takes the most probable piece."),
        seen="step",
        also=say("greedy", about="glossary"),
    ),
    Term(
        say("beam search", about="glossary"),
        say("Keeps several beginnings at once and goes on with the best."),
        seen="beam",
    ),
    Term(say("beam", about="glossary"), say("One of the beginnings that beam search keeps."), seen="beam"),
    Term(
        say("hypothesis", about="glossary"),
        say("A finished result of beam search."),
        seen="beam",
        also=say("hypotheses", about="glossary"),
    ),
    Term(
        say("length penalty", about="glossary"),
        say("Keeps beam search from preferring short outputs only because they have fewer factors."),
        seen="beam",
    ),
    Term(
        say("sampling", about="glossary"),
        say("Draws the next piece at random from the distribution."),
        seen="sampling",
    ),
    Term(say("top-k", about="glossary"), say("Draws only from the k most probable pieces."), seen="sampling"),
    Term(
        say("top-p", about="glossary"),
        say("Draws only from the fewest pieces that reach probability p together."),
        seen="sampling",
    ),
    Term(say("seed", about="glossary"), say("A number that makes random draws repeatable."), seen="sampling"),
    Term(
        say("forced piece", about="glossary"),
        say("A piece that the user puts in place of the model's choice."),
        seen="step",
        also=say("force", about="glossary"),
    ),
    Term(say("branch", about="glossary"), say("An output that goes on from a forced piece."), seen="step"),
    Term(
        say("key-value cache", about="glossary"),
        say("Keeps keys and values of earlier steps, so that they need not be computed again."),
        seen="masks",
        also=say("KV cache", about="glossary"),
    ),
)
