"""Maps that were given, with how a file of them is made."""

from typing import Final

from glassformer.checkpoints.checkpoint_panels import table
from glassformer.extensions.maps.code_to_copy import EXAMPLE
from glassformer.runs.open_run import address
from glassformer.runs.sides import KIND_NAMES
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.door import st
from glassformer.state import session
from transformer.i18n import say
from transformer.runs.labelled_maps import LabelledAttention, LabelledMaps

ARRAYS: Final[dict[str, str]] = {
    "encoder_weights": say("floats [layer, head, query, key], 0 to 1"),
    "encoder_queries": say("a label for each row"),
    "encoder_keys": say("a label for each column"),
    "encoder_allowed": say("optional: the mask, bool [query, key], True where a query may attend"),
    "encoder_sums_to_one": say("optional: False if rows need not sum to 1"),
    "checkpoint": say("optional: the model's name"),
    "sentence": say("optional: the sentence that the model read"),
    "special": say("optional: the labels of special pieces, so they can be hidden"),
}


def card(maps: LabelledMaps, name: str) -> None:
    """Draw what a file of maps holds."""
    st.subheader(drawing.plain(name))
    rows: dict[str, str] = {
        say("Model"): maps.checkpoint,
        say("Sentence"): maps.sentence,
        **{KIND_NAMES[one.kind]: _in_short(one) for one in maps.attentions},
        say("Special pieces"): " ".join(maps.special),
        say("Content hash"): maps.content_hash[:12],
    }
    with st.container(key=page_style.CARD):
        st.table(table(rows), hide_header=True)
    menu.link("attention", say("Look at these maps"), address(maps, session.asked()), icon=":material/visibility:")


def _in_short(one: LabelledAttention) -> str:
    n_layers, n_heads, n_queries, n_keys = one.weights.shape
    sizes = say("{layers} layers × {heads} heads, {queries} queries × {keys} keys", layers=n_layers, heads=n_heads,
                queries=n_queries, keys=n_keys)  # fmt: skip
    return sizes if one.sums_to_one else say("{sizes}; rows need not sum to 1", sizes=sizes)


def how_to_make_one() -> None:
    """Draw what a file of maps has to hold, with an example."""
    with st.expander(say("Attention maps of a model that this app cannot open")):
        st.markdown(
            say(
                "You can save attention maps in a file `NAME.npz` next to the checkpoint folders. The Attention "
                "page then shows all of its parts that need only attention weights. Here is an example for a "
                "Hugging Face `transformers` model loaded with {eager}:",
                eager='`attn_implementation="eager"`',
            )
        )
        st.code(EXAMPLE, language="python")
        st.markdown(
            say(
                "In the names of the arrays, replace {encoder} with {decoder} for decoder self-attention, or with "
                "{cross} for cross-attention. A file needs at least one of these three kinds of attention. Its "
                "arrays are:",
                encoder="`encoder`",
                decoder="`decoder`",
                cross="`cross`",
            )
        )
        st.table(table(ARRAYS), hide_header=True)
