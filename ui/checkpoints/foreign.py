"""What opens beside checkpoint folders: models of other programs, with an example for each kind."""

from __future__ import annotations

from transformer.checkpoint.foreign import SUFFIXES
from transformer.importers.huggingface.families import FAMILIES
from ui.checkpoints.example import FILE, FOLDER
from ui.checkpoints.panels import table
from ui.shared.door import st
from words import say


def what_opens() -> None:
    """Draw what may lie in a folder of checkpoints, and how it gets there."""
    with st.expander(say("Models of other programs")):
        st.markdown(
            say(
                "What other programs saved may lie in the same folders, and opens without them. The page Open a "
                "checkpoint says what was understood of it, and asks what its files do not say."
            )
        )
        st.markdown(
            say(
                "**A folder of Hugging Face's `transformers`**, as its `save_pretrained` writes it or the hub has "
                "it: `config.json`, the weights and the tokenizer. It opens at once; where a family knows many "
                "languages, they are asked for."
            )
        )
        st.code(FOLDER, language="python")
        st.table(table(_families()), hide_header=True)
        st.markdown(
            say(
                "**A file of weights** ({suffixes}) of a model that was written after a tutorial, of The Annotated "
                "Transformer, or of one around `torch.nn.Transformer`. It does not say all that the model needs, "
                "such as the number of heads. Put the tokenizer beside it.",
                suffixes=", ".join(SUFFIXES),
            )
        )
        st.code(FILE, language="python")


def _families() -> dict[str, str]:
    """Names of families, and by which `model_type` each is known."""
    found: dict[str, list[str]] = {}
    for kind, family in FAMILIES.items():
        found.setdefault(family.name, []).append(kind)
    return {name: ", ".join(kinds) for name, kinds in found.items()}
