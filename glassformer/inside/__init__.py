"""The page Inside: diagram, stream, logit lens, feed-forward, embeddings, speed-ups; and its view state."""

from typing import Literal

from glassformer.state.fields import MAX_PLACE, Look, choice, flag, integer, place, text

Depths = Literal["layer", "sublayer"]
LensColour = Literal["probability", "rank"]


class InsideLook(Look):
    """What is looked at on the Inside page alone."""

    fold: bool = flag("fold")  # equal layers of the diagram are drawn once
    inside_panel: Literal["model", "stream", "lens", "ffn", "pieces", "fast"] = choice("inside", "model")
    neuron: int | None = place("neuron", MAX_PLACE)  # of a feed-forward layer, from 0; None for the page's own choice
    tokens: int | None = integer("tokens", MAX_PLACE)  # length for which costs are counted; None for the sentence's
    distances: bool = flag("distances")  # whether the table of kinds of layers is open
    tile: int = integer("tile", MAX_PLACE, 1)  # up to which tile of keys a softmax was walked, from 1
    tile_keys: int = integer("tile_keys", MAX_PLACE, 2)  # how many keys a tile has
    block: int = integer("block", MAX_PLACE, 4)  # how many tokens a block of the KV cache has
    norm: int = place("norm", MAX_PLACE, 0)  # which norm of a stack, from 0 in the order of the pass
    depths: Depths = choice("depths", "layer")  # where the logit lens reads
    lens_colour: LensColour = choice("lens", "probability")  # what colours the lens of all steps
    nearness: Literal["cosine", "distance"] = choice("near", "cosine")  # what makes an embedding near
    piece: str = text("piece")  # A piece of a table of embeddings, as "source.17"; "" for one of the sentence
