"""Terms of text and its pieces."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("piece", about="glossary"),
        say("A unit of text from the checkpoint's vocabulary: a word, part of a word, or one character."),
        seen="step",
    ),
    Term(
        say("token", about="glossary"),
        say("A piece at its place in a sequence; the model keeps one vector for each."),
        seen="stream",
    ),
    Term(
        say("tokenizer", about="glossary"),
        say("What cuts text into pieces and joins pieces to text again."),
        seen="step",
    ),
    Term(
        say("vocabulary", about="glossary"),
        say("All pieces that a model knows, each with a number."),
        seen="embeddings",
    ),
    Term(
        say("piece id", about="glossary"),
        say("The number of a piece in the vocabulary; it is what the model is really given."),
        seen="step",
        also=say("id", about="glossary"),
    ),
    Term(
        say("special piece", about="glossary"),
        say("A piece that stands for no text: start, end, padding or unknown."),
        seen="one_map",
        also=say("special mark", about="glossary"),
    ),
    Term(
        say("start mark", about="glossary"),
        say("What the decoder reads before it has written anything."),
        seen="step",
        also=say("<s>", about="glossary"),
    ),
    Term(
        say("end mark", about="glossary"),
        say("The piece that ends the output once it is chosen."),
        seen="step",
        also=say("</s>", about="glossary"),
    ),
    Term(
        say("space mark ▁", about="glossary"),
        say("The sign ▁ in a piece says that a space stood before it in the text."),
        seen="step",
    ),
    Term(
        say("unknown piece", about="glossary"),
        say("What stands in the sequence for text that the vocabulary lacks."),
    ),
    Term(say("source", about="glossary"), say("The sentence that the encoder reads."), seen="step"),
    Term(
        say("target", about="glossary"),
        say("The sentence that the decoder writes, or is given in training."),
        seen="masks",
    ),
    Term(
        say("output so far", about="glossary"),
        say("The pieces that the decoder has written up to this step."),
        seen="step",
    ),
    Term(say("sequence", about="glossary"), say("Tokens in their order."), seen="masks"),
    Term(say("batch", about="glossary"), say("Several sentences that go through the model together."), seen="masks"),
    Term(
        say("padding", about="glossary"),
        say("Pieces without meaning that make the sentences of a batch equally long."),
        seen="masks",
    ),
    Term(
        say("text normalisation", about="glossary"),
        say("What is done to the text before it is cut, such as turning Traditional into Simplified characters."),
        seen="checkpoints",
        also=say("normalisation", about="glossary"),
    ),
)
