"""Terms of what stands around attention in a layer, and of looking inside."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("residual connection", about="glossary"),
        say("Adds what went into a sub-layer to what comes out."),
        seen="model",
        also=say("residual sum", about="glossary"),
    ),
    Term(
        say("residual stream", about="glossary"),
        say("The vector of a token on its way through the layers; sub-layers read it and add to it."),
        seen="stream",
        also=say("stream", about="glossary"),
    ),
    Term(
        say("layer normalisation", about="glossary"),
        say("Brings each token's vector to mean 0 and variance 1, then scales and shifts it with learned numbers."),
        seen="stream",
        also=say("layer norm|final norm", about="glossary"),
    ),
    Term(
        say("pre-norm", about="glossary"),
        say("The norm stands before a sub-layer, inside the residual branch."),
        seen="model",
    ),
    Term(
        say("post-norm", about="glossary"),
        say("The norm stands after the residual sum, as in the first paper."),
    ),
    Term(
        say("feed-forward network", about="glossary"),
        say("Two matrices with an activation between them, applied to each token by itself."),
        seen="neurons",
        also=say("feed-forward layer|feed-forward", about="glossary"),
    ),
    Term(
        say("neuron", about="glossary"),
        say("One of the d_ff numbers inside the feed-forward network."),
        seen="neurons",
    ),
    Term(say("activation", about="glossary"), say("How strongly a neuron answers to a token."), seen="neurons"),
    Term(
        say("activation function", about="glossary"),
        say("The bend between two matrices; ReLU turns every negative number into 0."),
        seen="neurons",
    ),
    Term(
        say("logit lens", about="glossary"),
        say("Reads the stream at an earlier depth as if it were the last."),
        seen="lens",
        also=say("lens", about="glossary"),
    ),
    Term(
        say("root mean square", about="glossary"),
        say("The typical size of a vector's numbers."),
        seen="stream",
        also=say("RMS", about="glossary"),
    ),
)
