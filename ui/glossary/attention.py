"""Terms of attention."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("attention", about="glossary"),
        say("Each token takes a weighted mean of other tokens' vectors, weighted by how well they fit."),
        seen="all_heads",
    ),
    Term(
        say("self-attention", about="glossary"),
        say("Attention in which query, key and value come from the same sequence."),
        seen="encoder",
    ),
    Term(
        say("cross-attention", about="glossary"),
        say("Attention in which the decoder asks and the encoder's output answers."),
        seen="step",
    ),
    Term(
        say("query", about="glossary"), say("The vector by which a token says what it looks for."), seen="one_weight"
    ),
    Term(
        say("key", about="glossary"),
        say("The vector by which a token says what it can be found by."),
        seen="one_weight",
    ),
    Term(
        say("value", about="glossary"),
        say("The vector that a token hands over when it is attended to."),
        seen="one_weight",
        among=say("key|query|head", about="glossary"),
    ),
    Term(
        say("dot product", about="glossary"),
        say("Multiply two vectors number by number and add up; large if they point the same way."),
        seen="one_weight",
    ),
    Term(
        say("attention score", about="glossary"),
        say("How well a query fits a key: their dot product, divided by √d_head."),
        seen="one_weight",
        also=say("score", about="glossary"),
        among=say("key|query", about="glossary"),
    ),
    Term(
        say("scaling by √d_head", about="glossary"),
        say("Dividing scores so that long vectors do not make the softmax too sharp."),
        seen="one_weight",
        also=say("√d_head", about="glossary"),
    ),
    Term(
        say("scaled dot-product attention", about="glossary"),
        say("softmax(q · k / √d_head) times the values."),
        seen="one_weight",
    ),
    Term(
        say("softmax", about="glossary"),
        say("Turns any numbers into positive ones that add up to 1, the largest getting most."),
        seen="one_weight",
    ),
    Term(
        say("attention weight", about="glossary"),
        say("The share, from 0 to 1, that a query gives to a key; a row adds up to 1."),
        seen="one_weight",
        also=say("weight", about="glossary"),
    ),
    Term(
        say("weighted sum", about="glossary"),
        say("Vectors multiplied by their weights and added."),
        seen="one_weight",
        also=say("weighted value", about="glossary"),
    ),
    Term(
        say("convex combination", about="glossary"),
        say(
            "A weighted mean with weights of at least 0 that add up to 1; it never leaves the range of what it mixes."
        ),
        seen="one_weight",
    ),
    Term(
        say("head", about="glossary"),
        say("One of several attentions side by side, each with its own queries, keys and values."),
        seen="all_heads",
    ),
    Term(
        say("multi-head attention", about="glossary"),
        say("Several heads at once; their outputs are joined and projected."),
        seen="all_heads",
    ),
    Term(
        say("output projection (W_O)", about="glossary"),
        say("The matrix that turns the joined heads into what is added to the stream."),
        seen="one_weight",
    ),
    Term(
        say("contribution of a head", about="glossary"),
        say("What one head adds to the sub-layer's output after W_O."),
        seen="one_weight",
    ),
    Term(
        say("attention map", about="glossary"),
        say("All weights of a head: one row a query, one column a key."),
        seen="one_map",
    ),
    Term(say("heat map", about="glossary"), say("A table drawn with colours instead of numbers."), seen="one_map"),
    Term(
        say("attention rollout", about="glossary"),
        say("Maps of all layers multiplied, each mixed with the residual path, to follow weights down to the input."),
        seen="rollout",
        also=say("rollout", about="glossary"),
    ),
    Term(
        say("word alignment", about="glossary"),
        say("Which source word a target word stands for."),
    ),
    Term(
        say("alignment error rate", about="glossary"),
        say("How far links read off attention differ from links made by people; 0 is best."),
        also=say("AER", about="glossary"),
    ),
    Term(
        say("similarity function", about="glossary"),
        say("The rule that turns a query and a key into a score."),
        seen="one_weight",
    ),
    Term(
        say("key bias", about="glossary"),
        say("The bias in the keys' projection; it shifts all scores of a row alike, so the softmax ignores it."),
    ),
)
