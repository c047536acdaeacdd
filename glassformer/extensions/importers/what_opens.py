"""What opens beside checkpoint folders: which models of other programs may lie in the folders of checkpoints."""

from typing import Final

from glassformer.checkpoints.checkpoint_panels import table
from glassformer.extensions.importers.library.foreign import SUFFIXES
from glassformer.extensions.importers.library.readers import readers
from glassformer.shared.door import st
from transformer.i18n import say

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
        for said, example, families in filter(None, (one.told() for one in readers())):
            st.markdown(said)
            st.code(example, language="python")
            st.table(table(families), hide_header=True)
        st.markdown(
            say(
                "**A weights file** ({suffixes}) of a model that follows a tutorial or The Annotated Transformer, "
                "or is built around `torch.nn.Transformer`. The file does not contain everything that the model "
                "needs, such as the number of heads. Put the tokenizer next to it.",
                suffixes=", ".join(SUFFIXES),
            )
        )
        st.code(FILE, language="python")
