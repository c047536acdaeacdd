"""The page Over a corpus: the choice of a corpus run, what it is of, and the chosen part."""

import shlex
from collections.abc import Sequence
from typing import Final

from glassformer.extensions.corpus import corpora
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.library.folder import About, Run, summaries
from glassformer.extensions.corpus.page.corpus_pictures import CORPUS, CorpusScene
from glassformer.extensions.corpus.page.open_corpus_run import (
    OpenCorpus,
    choose_head,
    choose_kind,
    choose_measure,
    name_of,
)
from glassformer.runs import loading
from glassformer.runs.open_run import attempt
from glassformer.runs.show import choose_part
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import anatomy

COMMAND: Final = "python -m transformer corpus {folder} --pairs FILE --out DIR"
SETTING: Final = "streamlit run app.py -- --corpora DIR\nGLASSFORMER_CORPORA=DIR"


RUN: Final = "corpus_run"
OF_HEADS: Final = ("heads", "head", "beside")  # parts that show one measure


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page; `checkpoint` is the one that is chosen, which need not be that of the corpus run."""
    found, problems = corpora.listed()
    for problem in problems:
        st.warning(drawing.plain(problem), icon=":material/folder_off:")
    if not found:
        _how_to_make_one(checkpoint)
        return
    run = _chosen(found, checkpoint)
    st.caption(drawing.plain(told(run, checkpoint)))
    scene = attempt(lambda: _scene(run, checkpoint))
    if scene is None:
        return
    with controls.bar(MAIN):
        part = choose_part(CORPUS, MAIN)
        if part == "heads":
            choose_kind(scene)
        if part in ("head", "joined", "beside"):
            choose_head(scene)
        if part in OF_HEADS:
            choose_measure(scene)
    cover_box.part(lambda: attempt(lambda: CORPUS.listed()[part].draw(OpenCorpus(run, scene, checkpoint))))


# ------------------------------------------------------------------------------------------------ which run


def _how_to_make_one(checkpoint: Checkpoint) -> None:
    """What a corpus run is, and how one is made."""
    st.markdown(
        say(
            "A corpus run measures every head of a model on each line of a file, for example 100,000 sentences. This "
            "page shows what the heads do over all these lines, with 95 % intervals, and leads to single sentences."
        )
    )
    st.markdown(say("Measure a file, which has one source per line, then a tab and its reference:"))
    entry = loading.found(str(st.session_state.get(session.MODEL) or ""))
    folder = shlex.quote(f"checkpoints/{checkpoint.name}" if entry is None else str(entry.folder))
    st.code(COMMAND.format(folder=folder), language="sh")
    st.markdown(say("Then tell the app where it is, as an option or in the environment:"))
    st.code(SETTING, language="sh")
    where = corpora.folders()
    if where:
        said = say_n(
            "There is no corpus run yet in this folder: {names}.",
            "There is no corpus run yet in these folders: {names}.",
            len(where),
            names=joined(", ", map(str, where)),
        )
        st.caption(drawing.plain(said))


def _chosen(found: Sequence[Run], checkpoint: Checkpoint) -> Run:
    """Draw the choice of a run; one that there is not is let go and said."""
    asked, names = session.view(MAIN).of(CorpusLook).corpus_run, {run.key: run for run in found}
    own = next((run.key for run in found if run.about.content_hash == checkpoint.content_hash), found[0].key)
    if asked and asked not in names:
        drawing.notes([say("There is no corpus run “{name}” here; another one is shown.", name=asked)])
        session.replace(MAIN, corpus_run="")
    labels: dict[str, Sentence] = {key: _label(run) for key, run in names.items()}
    key = controls.menu(
        controls.field(MAIN, "corpus_run", key=RUN, forgets=("line", "leaf", "bound")),
        say("Corpus run"),
        labels,
        otherwise=own,
        bare=True,
        width=460,
    )
    return names[key]


def _label(run: Run) -> Sentence:
    return say("{checkpoint}: {file} · {state}", checkpoint=name_of(run), file=files(run.about), state=lines_of(run))


def files(about: About) -> str:
    """The names of the files of lines."""
    return joined(", ", about.files)


def lines_of(run: Run) -> Sentence:
    """How many lines it has, and how many of them are there."""
    if run.about.complete or run.lines_done >= run.about.lines:
        return say_n("{n:,} line", "{n:,} lines", run.about.lines)
    return say("{n:,} of {all:,} lines so far", n=run.lines_done, all=run.about.lines)


def told(run: Run, checkpoint: Checkpoint) -> Sentence:
    """How a run was measured, and whether on another checkpoint than the chosen one."""
    about = run.about
    how = say("Measured while the model read the reference.")
    if about.options.decode:
        how = say("Measured on the model's own greedy output.")
    if about.content_hash == checkpoint.content_hash:
        return how
    other = say("This run is of the checkpoint {name}, not of the one chosen in the sidebar.", name=about.checkpoint)
    return joined(" ", [how, other])


# ------------------------------------------------------------------------------------------------ what is looked at


def _scene(run: Run, checkpoint: Checkpoint) -> CorpusScene | None:
    found = summaries(run)
    if not found:
        st.info(say("No line of this corpus run could be measured."), icon=":material/info:")
        return None
    parts = anatomy(checkpoint.config) if checkpoint.content_hash == run.about.content_hash else None
    scene = CorpusScene(found, parts, session.view(MAIN))
    layers, heads = scene.size(scene.kind)
    controls.let_go(MAIN, layers, heads)
    return scene
