"""Files of attention maps as a `Source` of the checkpoint menu: cached reading, card, label, how to write one."""

from pathlib import Path
from typing import Final

from glassformer.charts.theme import shortened
from glassformer.checkpoints import table
from glassformer.extensions.maps.library.given_maps import GivenMaps
from glassformer.extensions.maps.library.npzfile import HOLDS, read_maps
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.run_address import address
from glassformer.runs.sources import Source
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry, Signature, signature
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say
from transformer.runs.trace import LabelledAttention, LabelledMaps

EXAMPLE: Final = """\
inputs = tokenizer("The cat sat on the mat.", return_tensors="pt")
output = model(**inputs, output_attentions=True)
tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
weights = torch.stack([layer[0] for layer in output.attentions]).float().numpy(force=True)
np.savez_compressed("cat.npz", encoder_weights=weights, encoder_queries=tokens, encoder_keys=tokens)"""


ARRAYS: Final[dict[str, str]] = {
    "encoder_weights": say("floats [layer, head, query, key], 0 to 1"),
    "encoder_queries": say("a label for each row"),
    "encoder_keys": say("a label for each column"),
    "encoder_allowed": say("optional: the mask, bool [query, key], True where a query may attend"),
    "encoder_sums_to_one": say("optional: False if rows need not sum to 1"),
    "encoder_signed": say("optional: True for attributions, which may be below 0"),
    "checkpoint": say("optional: the model's name"),
    "sentence": say("optional: the sentence that the model read"),
    "special": say("optional: the labels of special tokens, so they can be hidden"),
}


def _in_short(one: LabelledAttention) -> str:
    n_layers, n_heads, n_queries, n_keys = one.weights.shape
    sizes = say("{layers} layers × {heads} heads, {queries} queries × {keys} keys", layers=n_layers, heads=n_heads,
                queries=n_queries, keys=n_keys)  # fmt: skip
    return sizes if one.sums_to_one else say("{sizes}; rows need not sum to 1", sizes=sizes)


LONGEST_TITLE = 120


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(file: str, root: str, sign: Signature) -> GivenMaps:
    path = Path(file)
    with FolderFiles(Path(root), inside=Path(root)).open(path.name) as (content, size):
        return read_maps(content, size, label=path.name)


class MapsSource(Source):
    """Files of maps in the folders of checkpoints."""

    holds = HOLDS
    has_models = False

    def maps(self, entry: Entry) -> GivenMaps:
        """What its file holds."""
        return _read(str(entry.folder), str(entry.root), signature(entry.folder))

    def card(self, maps: LabelledMaps, name: str) -> None:
        """Their sizes, and what they are of."""
        st.subheader(drawing.plain(name))
        rows: dict[str, str] = {
            say("Model"): maps.checkpoint,
            say("Sentence"): maps.sentence,
            **{KIND_NAMES[one.kind]: _in_short(one) for one in maps.attentions},
            say("Special tokens"): " ".join(maps.special),
            say("Content hash"): maps.content_hash[:12],
        }
        with st.container(key=page_style.CARD):
            st.table(table(rows), hide_header=True)
        menu.link("attention", say("Look at these maps"), address(maps, session.asked()), icon=":material/visibility:")

    def explain(self) -> None:
        """How a file is made: what it has to hold, with an example."""
        with st.expander(say("Attention maps of a model that this app cannot open")):
            said = say(
                "You can save attention maps in a file `NAME.npz` next to the checkpoint folders. The Attention "
                "page then shows all of its parts that need only attention weights. Here is an example for a "
                "Hugging Face `transformers` model loaded with {eager}:",
                eager='`attn_implementation="eager"`',
            )
            st.markdown(said)
            st.code(EXAMPLE, language="python")
            said = say(
                "In the names of the arrays, replace {encoder} with {decoder} for decoder self-attention, or "
                "with {cross} for cross-attention. A file needs at least one of these three kinds of attention. "
                "Its arrays are:",
                encoder="`encoder`",
                decoder="`decoder`",
                cross="`cross`",
            )
            st.markdown(said)
            st.table(table(ARRAYS), hide_header=True)

    def label(self, entry: Entry) -> str | None:
        """The name, marked as maps and not a model."""
        return say("{name} (maps)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """What they are of."""
        if entry.holds != HOLDS or entry.error is not None:
            return None
        title = shortened(entry.title, limit=LONGEST_TITLE)
        return ":material/grid_on:", say("attention maps: {title}", title=title)


SOURCE = MapsSource()
