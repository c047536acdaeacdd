"""Third-party models in the checkpoint folders (`Source`): find, preview, rank answers, open and cache them.

Only files inside those folders are touched, however the path was typed. A reader may name tokenizer files besides
answers to the report's questions; they are kept like answers, so a URL has all of it.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from glassformer.checkpoints import table
from glassformer.extensions.importers.library import opening
from glassformer.extensions.importers.library.import_inputs import ImportInputs, ImportRequest
from glassformer.extensions.importers.library.kept_answers import ENDING, paths_of
from glassformer.extensions.importers.library.opening import HOLDS, QuestionsError, kind_of
from glassformer.extensions.importers.library.readers import SUFFIXES, Reader, readers
from glassformer.extensions.importers.library.report import Imported, ImportReport
from glassformer.extensions.weight_files import pickles
from glassformer.extensions.weight_files.weight_folder import settings_files
from glassformer.extensions.weight_files.weights import OUTLINE
from glassformer.frame.source_box import head
from glassformer.runs import loading
from glassformer.runs.run_address import publish_unopened
from glassformer.runs.sources import QUESTIONS, Source, sources
from glassformer.server import server_options
from glassformer.server.parts import ServerPart
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import MAX_NAME, Answers, read_answers, write_answers
from transformer.analysis.losses import samples_of
from transformer.checkpoint.free_memory import Progress
from transformer.checkpoint.listing import Entry, Signature, entry_at, signature
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.opening import load
from transformer.errors import UnansweredError
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say, say_n

TOKENIZERS: Final = ("pieces", "source_pieces", "target_pieces")  # names of answers that are files
MOST_FILES = 1_000  # of a folder, whose versions are compared

MOST_OPENED = 256  # whose answers are remembered

_ONE_AT_A_TIME = threading.Lock()  # each import may hold a model in memory
_ONE_SCORED = threading.Lock()  # which takes longer, and nobody else shall wait for it


class ImportersServer(ServerPart):
    """What happens once, when the server starts."""

    def start(self) -> None:
        """Keep processes for pickles ready: every answer looks into a file again, and shall not wait for one."""
        pickles.keep(2)


SERVER = ImportersServer()


def listed() -> dict[str, Entry]:
    """What other programs saved, by name."""
    return {entry.name: entry for entry in loading.entries() if entry.error is None and entry.holds == HOLDS}


def find(path: str) -> Entry | None:
    """What another program saved at a path, from a folder of checkpoints on, whether it opens or not."""
    for root in loading.folders():
        try:
            inside = root.resolve(strict=True)
            place = (inside / path).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            continue
        if inside in place.parents:
            name = place.relative_to(inside)
            hidden = any(part.startswith(".") or not part.isprintable() for part in name.parts)
            known = not hidden and len(name.as_posix()) <= MAX_NAME  # an address has to say it
            entry = entry_at(place, name.as_posix(), inside) if known else None
            if entry is not None and entry.holds == HOLDS:
                return entry
    return None


def preview(entry: Entry, given: Answers = ()) -> Imported:
    """What an import makes of it; CheckpointError if it cannot be read, or an answer is impossible."""
    return _examine(*_which(entry, given))


def open_foreign(entry: Entry, given: Answers = ()) -> Checkpoint:
    """The model as a cached checkpoint, made again when its files change. A QuestionsError, or as of `preview`."""
    which, opened = _which(entry, given), _opened()
    checkpoint = _open(which)
    opened[checkpoint.content_hash] = which
    for old in list(opened)[:-MOST_OPENED]:
        opened.pop(old, None)
    return checkpoint


def scored(
    entry: Entry, given: Answers, report: ImportReport, texts: str, progress: Callable[[int, int], None]
) -> ImportReport:
    """The report with the choices of what is asked ranked by the loss with each; it may take a minute.

    The texts are one pair per line with a tab between, or sources only; a DataError if none can be read. `progress`
    gets how many combinations were tried, and the most there can be.
    """
    samples = samples_of(texts, label=say("The sentences"))
    with _ONE_SCORED:
        asked = _request(_which(entry, given))
        return opening.ranked(asked, report, samples, progress=progress, device=server_options.device())


def forget(folder: Path) -> None:
    """Let go of all that was made of a folder, called as in its entry, which is no more."""
    opened = _opened()
    for content_hash, which in list(opened.items()):
        if which[0] == str(folder):
            opened.pop(content_hash, None)
    _examine.clear()
    loading.let_go(lambda which: isinstance(which, tuple) and which[:2] == ("foreign", str(folder)))


def version(entry: Entry, given: Answers) -> str:
    """A hash of all that decides what an import makes of it."""
    return hashlib.sha256(repr(_which(entry, given)).encode()).hexdigest()


def has_own_tokenizer(entry: Entry) -> bool:
    """Whether the import finds a tokenizer by itself, as it does in folders of Hugging Face's."""
    return entry.folder.is_dir() and isinstance(kind_of(entry.folder, inside=entry.root)[0], Reader)


def beside(entry: Entry) -> list[str]:
    """Files that may be tokenizers, beside the weights or one folder on; paths from the folder of checkpoints on."""
    folder = entry.folder if entry.folder.is_dir() else entry.folder.parent
    try:
        found = sorted(
            file
            for pattern in ("*.model", "*.json", "*.vocab", "*.txt")
            for place in (pattern, f"*/{pattern}")
            for file in folder.glob(place)
        )
    except OSError:
        return []
    names = [file.relative_to(entry.root).as_posix() for file in found[:MOST_FILES]]
    shown = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return [name for name in shown if not name.endswith((OUTLINE, ENDING))]  # which are this program's own


_Which = tuple[str, str, Signature, str]


def _which(entry: Entry, given: Answers) -> _Which:
    """All that decides what an import makes of it."""
    names = [""]
    settings = list[Path]()
    with suppress(OSError):  # a file, or a folder that was removed
        settings += settings_files(entry.folder, entry.root)
        names += sorted(os.listdir(entry.folder))[:MOST_FILES]
    tokenizers = [str(value) for name, value in given if name in TOKENIZERS]
    kept = [one for path in (*paths_of(entry.folder), *settings) for one in signature(path, [""])]
    sign = (*signature(entry.folder, names), *signature(entry.root, tokenizers), *kept)
    return str(entry.folder), str(entry.root), sign, write_answers(given)


@st.cache_resource(show_spinner=False)
def _opened() -> dict[str, _Which]:
    """What was opened, by content hash."""
    return {}


@st.cache_resource(max_entries=64, show_spinner=False)
def _examine(source: str, root: str, sign: Signature, given: str) -> Imported:
    with _ONE_AT_A_TIME:
        return opening.previewed(_request((source, root, sign, given)))


def _open(which: _Which) -> Checkpoint:
    def read(progress: Progress) -> Checkpoint:
        asked, device = _request(which), server_options.device()
        inside = asked.inside
        return load(source, answers=asked.answers, given=asked.given, inside=inside, progress=progress, device=device)

    source = Path(which[0])
    return loading.in_memory(("foreign", *which), source, read)


def _request(which: _Which) -> ImportRequest:
    """What is to be opened, with the answers to questions, and the files that were given."""
    source, root, _, given = which
    answers = dict(read_answers(given) or ())
    files: dict[str, Any] = {
        name: _inside(Path(root), str(answers.pop(name))) for name in TOKENIZERS if name in answers
    }
    return ImportRequest(Path(source), answers, ImportInputs(**files), Path(root))


def _inside(root: Path, name: str) -> Path:
    """A file of a tokenizer, inside the folder of checkpoints."""
    with FolderFiles(root, inside=root).open(name):
        return (root / name).resolve(strict=True)


PAGE: Final = "open"
MORE: Final = ":material/quiz:"
FILE: Final = 'torch.save(model.state_dict(), "DIR/lesson.pt")'


class ImportersSource(Source):
    """Models in the checkpoint folders or at a path in them; an extension that adds models overrides how they come."""

    holds = HOLDS

    def at(self, name: str) -> Entry | None:
        """What lies at a path, whole or from a folder of checkpoints on; None of what does not open."""
        found = listed().get(name) or find(name)
        return found if found is not None and found.error is None else None

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
        return open_foreign(entry, session.answers_of(entry.name))

    def ask(self, entry: Entry, title: str, error: UnansweredError) -> NoReturn:
        """Say how many questions have to be answered first, and lead to the page that asks; stops the page."""
        assert isinstance(error, QuestionsError)
        if title:
            head(title)
        said = say_n(
            "“{name}” cannot be opened until you answer {n} question about the model.",
            "“{name}” cannot be opened until you answer {n} questions about the model.",
            len(error.report.asked),
            name=entry.title,
        )
        st.info(drawing.with_code(said), icon=MORE)
        menu.link(PAGE, say("Answer the questions"), replace(session.asked(), revision=""), icon=MORE, at=QUESTIONS)
        publish_unopened()
        st.stop()

    def opened(self, content_hash: str) -> Checkpoint | None:
        """With the answers that it was opened with."""
        which = _opened().get(content_hash)
        return None if which is None else _open(which)

    def label(self, entry: Entry) -> str | None:
        """Whose it is."""
        return say("{name} (from another program)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """Where it opens."""
        said = say("from another program: see the “Open a checkpoint” page")
        return (":material/quiz:", said) if entry.holds == HOLDS else None

    def explain(self) -> None:
        """Which formats, families and endings may lie in a folder of checkpoints, and how they get there."""
        with st.expander(say("Models from other programs")):
            said = say(
                "You can put models saved by other programs into the same folders. They open without those programs. "
                "The “Open a checkpoint” page shows what it recognised and asks you for any information that the "
                "files lack."
            )
            st.markdown(said)
            for said, example, families in filter(None, (one.told() for one in readers())):
                st.markdown(said)
                st.code(example, language="python")
                st.table(table(families), hide_header=True)
            said = say(
                "**A weights file** ({suffixes}) of a model that follows a tutorial or The Annotated Transformer, or "
                "is built around `torch.nn.Transformer`. The file does not contain everything that the model needs, "
                "such as the number of heads. Put the tokenizer next to it.",
                suffixes=", ".join(SUFFIXES),
            )
            st.markdown(said)
            st.code(FILE, language="python")


def ways() -> tuple[ImportersSource, ...]:
    """All that bring models to the page that opens them."""
    return tuple(one for one in sources() if isinstance(one, ImportersSource))


def brought(name: str) -> bool:
    """Whether a name is that of a model which did not lie in a folder of checkpoints."""
    return any(one.brought(name) for one in ways())


SOURCE = ImportersSource()
