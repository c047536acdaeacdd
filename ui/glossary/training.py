"""Terms of training, scores and experiments."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("training", about="glossary"),
        say("Changing parameters step by step so that the right pieces become more probable."),
        seen="checkpoints",
    ),
    Term(
        say("loss", about="glossary"),
        say("The number that training makes smaller; it is large where the right piece was improbable."),
        seen="checkpoints",
    ),
    Term(
        say("cross-entropy", about="glossary"),
        say("The usual loss: minus the log-probability of the right piece."),
        seen="checkpoints",
    ),
    Term(
        say("perplexity", about="glossary"),
        say("The loss as a number of equally likely choices: e to the power of the cross-entropy in nats."),
        seen="forcing",
    ),
    Term(
        say("label smoothing", about="glossary"),
        say("Training towards a little less than certainty, so that a good model still says about 0.9."),
        seen="checkpoints",
    ),
    Term(
        say("teacher forcing", about="glossary"),
        say("In training the decoder reads the right pieces, not its own."),
        seen="forcing",
    ),
    Term(
        say("reference", about="glossary"),
        say("The right output for a source, against which an output is judged."),
        seen="forcing",
    ),
    Term(
        say("exposure bias", about="glossary"),
        say("A model trained on right beginnings has never seen its own mistakes."),
        seen="forcing",
    ),
    Term(
        say("training, development and test set", about="glossary"),
        say("Data to learn from, to choose settings by, and to score once at the end."),
        seen="checkpoints",
        also=say("training set|development set|test set", about="glossary"),
    ),
    Term(say("epoch", about="glossary"), say("One pass through the training set."), seen="checkpoints"),
    Term(
        say("learning rate", about="glossary"),
        say("How far parameters move in one training step."),
        seen="checkpoints",
    ),
    Term(
        say("warm-up", about="glossary"),
        say("The first steps, in which the learning rate grows from near 0."),
        seen="checkpoints",
    ),
    Term(
        say("dropout", about="glossary"),
        say("In training some numbers are set to 0 at random; in use it is off."),
        seen="sentence",
    ),
    Term(
        say("overfitting", about="glossary"),
        say("Learning the training set by heart: it gets better there and worse elsewhere."),
        seen="checkpoints",
    ),
    Term(
        say("gradient", about="glossary"),
        say("How a result would change if a number moved a little, such as the loss with a parameter."),
    ),
    Term(say("vanishing gradient", about="glossary"), say("Gradients so small that early layers learn nothing.")),
    Term(say("saturation", about="glossary"), say("A softmax so sharp that small changes no longer move it.")),
    Term(
        say("BLEU", about="glossary"),
        say("Score of a translation by shared runs of words with a reference, 0 to 100."),
        seen="checkpoints",
    ),
    Term(
        say("chrF", about="glossary"),
        say("Score of a translation by shared runs of characters, 0 to 100."),
        seen="checkpoints",
    ),
    Term(
        say("chance level", about="glossary"),
        say("The score of guessing without having learnt anything."),
    ),
    Term(
        say("what-if", about="glossary"),
        say("Changing one thing in the model and running it again beside the unchanged run."),
    ),
    Term(say("intervention", about="glossary"), say("The change that a what-if makes.")),
    Term(
        say("control run", about="glossary"),
        say("The unchanged run that a what-if is compared with."),
        seen="compare",
    ),
    Term(
        say("KL divergence", about="glossary"),
        say("How far one distribution is from another, in nats: 0 if they are equal; their order matters."),
        seen="compare",
    ),
    Term(say("ablation", about="glossary"), say("Switching a part off to see what depends on it.")),
    Term(
        say("integrated gradients", about="glossary"),
        say("Credit to each input: the gradient's mean on the way from a baseline, times the difference."),
        seen="credit",
    ),
    Term(
        say("direct contribution", about="glossary"),
        say("What a part of the model adds to a logit by itself, past all later layers."),
        seen="contributions",
    ),
    Term(
        say("multiply-add", about="glossary"),
        say("One multiplication and one addition; the unit in which cost is counted here."),
        seen="model",
    ),
    Term(
        say("quadratic cost", about="glossary"),
        say("Four times the work for twice the length, as for attention maps."),
        seen="model",
        also=say("n² part", about="glossary"),
    ),
    Term(
        say("rounding error", about="glossary"),
        say("Tiny differences because computers keep only so many digits."),
        seen="one_weight",
    ),
    Term(say("quantisation", about="glossary"), say("Storing parameters with fewer digits.")),
    Term(
        say("speculative decoding", about="glossary"),
        say("A small model drafts pieces and the large one checks several at once."),
    ),
)
