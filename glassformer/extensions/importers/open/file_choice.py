"""What the page *Open a checkpoint* is about: the choice of a file or folder, or a path that is typed."""

from typing import Final

from glassformer.extensions.importers import foreign_models
from glassformer.extensions.importers.library.foreign import SUFFIXES
from glassformer.extensions.importers.source import brought, ways
from glassformer.runs import loading
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.link import MAX_NAME
from transformer.checkpoint.listing import Entry
from transformer.i18n import say

SOURCE: Final = "open_source"
REFUSED: Final = "open_refused"


def source(chosen: Entry) -> Entry | None:
    """Draw the choice of what to open, of another program or handed in; None if none is chosen."""
    found = foreign_models.listed()
    for one in ways():
        found |= one.own()
    ours = chosen.holds == "foreign" or brought(chosen.name)
    if ours:
        found[chosen.name] = chosen
        st.session_state[SOURCE] = chosen.name
    else:
        st.session_state[SOURCE] = None
    st.selectbox(
        say("File or folder"),
        list(found),
        index=None,
        key=SOURCE,
        on_change=_take,
        accept_new_options=True,
        format_func=lambda name: found[name].title if brought(name) and name in found else name,
        placeholder=say("Choose a file or folder on this server, or type its path"),
        width=620,
    )
    refused = st.session_state.pop(REFUSED, None)
    if refused is not None:
        st.error(drawing.with_code(_nowhere(refused)))
    return chosen if ours else None


def how_to_bring_one() -> None:
    """Say where files and folders have to lie, and which can be opened."""
    st.markdown(
        say(
            "Put the file or folder into one of the folders of checkpoints below, or start the app with `-- "
            "{option} DIR`. Only what is in these folders can be opened:",
            option=loading.OPTION,
        )
    )
    st.markdown("\n".join(f"- **{drawing.plain(folder.name)}**" for folder in loading.folders()))
    st.markdown(
        say(
            "You can open Hugging Face `transformers` folders and models saved by fairseq, OpenNMT-py, Joey NMT or "
            "Marian. You can also open files written by `torch.save` or safetensors ({suffixes}, or any other name) "
            "that contain PyTorch's own Transformer or a model from a tutorial. The Checkpoints page lists the model "
            "families.",
            suffixes=", ".join(SUFFIXES),
        )
    )


def _take() -> None:
    path = st.session_state.get(SOURCE)
    if not path:
        return
    entry = next((found for one in ways() if (found := one.at(str(path).strip())) is not None), None)
    if entry is None:
        st.session_state[REFUSED] = str(path)
        return
    st.session_state[session.MODEL] = entry.name
    session.change_model()


def _nowhere(path: str) -> str:
    return foreign_models.fault(path.strip()) or say(
        "There is no model from another program at “{path}” in the folders of checkpoints. Choose a folder with a "
        "config.json, or a file of weights. A path can have at most {most} characters.",
        most=MAX_NAME,
        path=path[:MAX_NAME],
    )
