"""Models of other programs where a page wants a checkpoint: those in folders, and those that extensions bring."""

from dataclasses import replace
from typing import Final, NoReturn

from glassformer.checkpoints import table
from glassformer.extensions.importers import third_party_models
from glassformer.extensions.importers.format import HOLDS
from glassformer.extensions.importers.library.opening import QuestionsError
from glassformer.extensions.importers.library.readers import SUFFIXES, readers
from glassformer.frame.source_box import head
from glassformer.runs.open_run import publish_unopened
from glassformer.runs.sources import Source, sources
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.errors import UnansweredError
from transformer.i18n import say, say_n

PAGE: Final = "open"
MORE: Final = ":material/quiz:"
FILE: Final = 'torch.save(model.state_dict(), "DIR/lesson.pt")'


class ImportersSource(Source):
    """Models in the checkpoint folders or at a path in them, with their answers.

    Another extension that adds models overrides how they get there.
    """

    holds = HOLDS

    def at(self, name: str) -> Entry | None:
        """What lies at a path."""
        return third_party_models.at(name)

    def brought(self, name: str) -> bool:
        """Whether a name is that of a model which did not lie in a folder of checkpoints."""
        return False

    def arrive(self) -> None:
        """Called when the page that opens them begins: choose what has come just now."""

    def offer(self, entry: Entry | None) -> None:
        """Draw, at the top of that page, how to bring one; `entry` is what is opened."""

    def about(self, entry: Entry) -> None:
        """Draw what is to be known of one that was brought."""

    def open(self, entry: Entry) -> Checkpoint:
        """With the answers of the session."""
        return third_party_models.open_foreign(entry, session.answers_of(entry.name))

    def ask(self, entry: Entry, title: str, error: UnansweredError) -> NoReturn:
        """Lead to the page that asks."""
        assert isinstance(error, QuestionsError)
        _ask(entry, title, len(error.report.asked))

    def opened(self, content_hash: str) -> Checkpoint | None:
        """With the answers that it was opened with."""
        return third_party_models.opened(content_hash)

    def label(self, entry: Entry) -> str | None:
        """Whose it is."""
        return say("{name} (from another program)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """Where it opens."""
        said = say("from another program: see the “Open a checkpoint” page")
        return (":material/quiz:", said) if entry.holds == HOLDS else None

    def explain(self) -> None:
        """Which formats, families and endings."""
        _what_opens()


def _ask(entry: Entry, title: str, asked: int) -> NoReturn:
    """Say how many questions have to be answered first, and lead to them; stops the page."""
    if title:
        head(title)
    said = say_n(
        "“{name}” cannot be opened until you answer {n} question about the model.",
        "“{name}” cannot be opened until you answer {n} questions about the model.",
        asked,
        name=entry.title,
    )
    st.info(drawing.plain(said), icon=MORE)
    menu.link(PAGE, say("Answer the questions"), replace(session.asked(), revision=""), icon=MORE)
    publish_unopened()
    st.stop()


def _what_opens() -> None:
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


def ways() -> tuple[ImportersSource, ...]:
    """All that bring models to the page that opens them."""
    return tuple(one for one in sources() if isinstance(one, ImportersSource))


def brought(name: str) -> bool:
    """Whether a name is that of a model which did not lie in a folder of checkpoints."""
    return any(one.brought(name) for one in ways())


SOURCE = ImportersSource()
