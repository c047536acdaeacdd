"""Given maps on the Checkpoints page: what a file holds, and how one is made."""

from __future__ import annotations

from typing import Final

from transformer.maps.own_maps import GivenAttention, GivenMaps
from ui.checkpoints.example import EXAMPLE
from ui.checkpoints.panels import table
from ui.runs.open_run import address
from ui.runs.sides import KIND_NAMES
from ui.shared import drawing, menu, style
from ui.shared.door import st
from ui.state import session
from words import say

ARRAYS: Final[dict[str, str]] = {
    "encoder_weights": say("floats [layer, head, query, key], 0 to 1"),
    "encoder_queries": say("a label for each row"),
    "encoder_keys": say("a label for each column"),
    "encoder_allowed": say("optional: the mask, bool [query, key], True where a query may attend"),
    "encoder_sums_to_one": say("optional: False if rows need not sum to 1"),
    "checkpoint": say("optional: the model's name"),
    "sentence": say("optional: what the model read"),
    "special": say("optional: the labels of special pieces, so that they can be hidden"),
}


def card(maps: GivenMaps, name: str) -> None:
    """Draw what a file of maps holds."""
    st.subheader(drawing.plain(name))
    rows: dict[str, str] = {
        say("Model"): maps.checkpoint,
        say("Sentence"): maps.sentence,
        **{KIND_NAMES[one.kind]: _in_short(one) for one in maps.attentions},
        say("Special pieces"): " ".join(maps.special),
        say("Content hash"): maps.content_hash[:12],
    }
    with st.container(key=style.CARD):
        st.table(table(rows), hide_header=True)
    menu.link("attention", say("Look at these maps"), address(maps, session.asked()), icon=":material/visibility:")


def _in_short(one: GivenAttention) -> str:
    n_layers, n_heads, n_queries, n_keys = one.weights.shape
    sizes = say(
        "{layers} layers × {heads} heads, {queries} queries × {keys} keys",
        layers=n_layers,
        heads=n_heads,
        queries=n_queries,
        keys=n_keys,
    )
    return sizes if one.sums_to_one else say("{sizes}; rows need not sum to 1", sizes=sizes)


def how_to_make_one() -> None:
    """Draw what a file of maps has to hold, with an example."""
    with st.expander(say("Attention maps of a model that cannot be opened here")):
        st.markdown(
            say(
                "A file `NAME.npz` beside the checkpoint folders may hold maps as they are, and the page Attention "
                "shows all of its parts that need only weights. An example, for a model of Hugging Face's "
                "`transformers` that was loaded with {eager}:",
                eager='`attn_implementation="eager"`',
            )
        )
        st.code(EXAMPLE, language="python")
        st.markdown(
            say(
                "Other attentions have {decoder} or {cross} in the place of {encoder}; one of the three is enough. "
                "These are the arrays of a file:",
                encoder="`encoder`",
                decoder="`decoder`",
                cross="`cross`",
            )
        )
        st.table(table(ARRAYS), hide_header=True)
