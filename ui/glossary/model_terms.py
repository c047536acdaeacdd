"""Terms of the model and its parts."""

from __future__ import annotations

from ui.glossary.term import Term
from words import say

TERMS = (
    Term(
        say("Transformer", about="glossary"),
        say("A network that handles a sequence with attention instead of going through it word by word."),
        seen="model",
    ),
    Term(
        say("encoder", about="glossary"),
        say("The part that reads the whole source at once and gives a vector for each of its tokens."),
        seen="model",
    ),
    Term(
        say("decoder", about="glossary"),
        say("The part that reads the output so far and predicts the next piece."),
        seen="model",
    ),
    Term(
        say("memory", about="glossary"),
        say("The encoder's last vectors, which cross-attention reads at every step."),
        seen="model",
        also=say("encoder's output", about="glossary"),
    ),
    Term(
        say("layer", about="glossary"),
        say("One round of attention and feed-forward network; a model repeats it with other parameters."),
        seen="model",
    ),
    Term(
        say("sub-layer", about="glossary"),
        say("One part of a layer: an attention or the feed-forward network."),
        seen="stream",
    ),
    Term(
        say("forward pass", about="glossary"),
        say("One calculation through the whole model, from ids to logits."),
        seen="model",
    ),
    Term(say("vector", about="glossary"), say("A list of numbers."), seen="one_weight"),
    Term(
        say("dimension", about="glossary"),
        say("One place in a vector; by itself it rarely means anything to people."),
        seen="table",
    ),
    Term(say("d_model", about="glossary"), say("How many numbers the vector of a token has."), seen="model"),
    Term(
        say("d_head", about="glossary"),
        say("How many numbers a query, key or value of one head has."),
        seen="one_weight",
    ),
    Term(
        say("d_ff", about="glossary"),
        say("How many neurons the feed-forward network has between its two matrices."),
        seen="neurons",
    ),
    Term(
        say("matrix", about="glossary"),
        say("Numbers in rows and columns."),
        seen="one_weight",
        also=say("matrices", about="glossary"),
    ),
    Term(
        say("tensor", about="glossary"),
        say("Numbers along any number of axes; vectors and matrices are tensors."),
        seen="checkpoints",
    ),
    Term(
        say("singular value", about="glossary"),
        say("How much longer or shorter a matrix makes vectors of one of its own directions."),
        seen="parameters",
    ),
    Term(
        say("effective rank", about="glossary"),
        say("How many directions a matrix uses: few, if a few of its singular values are much larger than the rest."),
        seen="parameters",
    ),
    Term(say("shape", about="glossary"), say("How many entries a tensor has along each axis."), seen="model"),
    Term(
        say("linear projection", about="glossary"),
        say("Multiplying a vector by a matrix to get another vector."),
        seen="one_weight",
    ),
    Term(
        say("bias", about="glossary"),
        say("A learned number that is added after a multiplication."),
        seen="one_weight",
    ),
    Term(
        say("parameter", about="glossary"),
        say("A number that training has set and that stays fixed afterwards."),
        seen="model",
    ),
    Term(
        say("buffer", about="glossary"), say("A table that is stored with the model but not trained."), seen="model"
    ),
    Term(
        say("weight tying", about="glossary"),
        say("Using one matrix in two places, such as embedding and output layer."),
        seen="model",
    ),
    Term(
        say("checkpoint", about="glossary"),
        say("A trained model on disk: settings, parameters and vocabulary."),
        seen="checkpoints",
    ),
    Term(
        say("embedding", about="glossary"),
        say("The vector that stands for a piece before anything else is known."),
        seen="embeddings",
    ),
    Term(
        say("embedding table", about="glossary"),
        say("The matrix with one row for each piece of the vocabulary."),
        seen="embeddings",
    ),
    Term(
        say("embedding scale", about="glossary"),
        say("The factor, often √d_model, by which embeddings are multiplied before positions are added."),
        seen="sentence",
    ),
    Term(
        say("nearest neighbour", about="glossary"),
        say("The piece whose embedding is closest to that of another."),
        seen="embeddings",
    ),
    Term(
        say("cosine similarity", about="glossary"),
        say("How alike the directions of two vectors are, from −1 to 1, whatever their lengths."),
        seen="embeddings",
        also=say("cosine", about="glossary"),
    ),
)
