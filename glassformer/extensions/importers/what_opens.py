"""What opens beside checkpoint folders: which models of other programs may lie in the folders of checkpoints."""

from typing import Final

from glassformer.checkpoints.checkpoint_panels import table
from glassformer.extensions.importers.library.foreign import SUFFIXES
from glassformer.extensions.importers.library.huggingface.families import FAMILIES
from glassformer.shared.door import st
from transformer.i18n import say

FOLDER: Final = """\
model.save_pretrained("DIR/my-gpt2")
tokenizer.save_pretrained("DIR/my-gpt2")"""
FILE: Final = 'torch.save(model.state_dict(), "DIR/lesson.pt")'


def what_opens() -> None:
    """Draw what may lie in a folder of checkpoints, and how it gets there."""
    with st.expander(say("Models from other programs")):
        st.markdown(
            say(
                "You can put models saved by other programs into the same folders. They open without those "
                "programs. The “Open a checkpoint” page shows what it recognised and asks you for any information "
                "that the files lack."
            )
        )
        st.markdown(
            say(
                "**A Hugging Face `transformers` folder**, written by `save_pretrained` or downloaded from the "
                "hub, with `config.json`, the weights and the tokenizer. It opens directly. If the model family "
                "supports many languages, the app asks you which ones to use."
            )
        )
        st.code(FOLDER, language="python")
        st.table(table(_families()), hide_header=True)
        st.markdown(
            say(
                "**A weights file** ({suffixes}) of a model that follows a tutorial or The Annotated Transformer, "
                "or is built around `torch.nn.Transformer`. The file does not contain everything that the model "
                "needs, such as the number of heads. Put the tokenizer next to it.",
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
