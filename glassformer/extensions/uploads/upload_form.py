"""Upload form of the page Open a checkpoint (drop zone, progress, errors), and the `Source` of uploads."""

from glassformer.extensions.importers.third_party_models import ImportersSource
from glassformer.extensions.uploads import session_uploads
from glassformer.extensions.uploads.library.archives import MEGABYTE, OURS
from glassformer.extensions.uploads.library.upload_worker import Done
from glassformer.extensions.uploads.session_uploads import File, Waiting
from glassformer.extensions.uploads.upload_store import KEPT_SECONDS
from glassformer.server import replicas, server_options
from glassformer.server.jobs import Job
from glassformer.server.model_runner import BusyError
from glassformer.shared import drawing
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, joined, say, say_n
from transformer.sandbox import can_limit

FILES, WAITING, REFUSED, ARRIVED = "handed_files", "handed_waiting", "handed_refused", "handed_arrived"
EMPTY, READ, FORGET = "hand_in_empty", "hand_in_read", "hand_in_forget"
MOST_ROWS = 12  # files with a button each
DRAW_AGAIN_SECONDS = 0.2


def _zone() -> None:
    st.markdown(_what_is_taken())
    st.file_uploader(
        say("Files of one model"), accept_multiple_files=True, key=_key(), on_change=_take, label_visibility="collapsed"
    )
    problem = st.empty()
    if (refused := st.session_state.get(REFUSED)) is not None:
        problem.error(drawing.with_code(refused))
    waiting = _waiting()
    if not waiting.files:
        return
    _list(waiting)
    with st.container(horizontal=True):
        opens, other = st.container(width="content"), st.container(width="content")
    with other:
        st.button(say("Empty the list"), key=EMPTY, on_click=_empty)
    about, is_open = "\n".join(file.name for file in waiting.files), False
    with pressed(opens.button, say("Open these files"), key=READ, about=about, type="primary") as asked:
        if asked:
            problem.empty()
            is_open = _read(waiting)
    if is_open:
        st.rerun()
    elif asked:
        problem.error(drawing.with_code(st.session_state[REFUSED]))


def _what_is_taken() -> str:
    pickles = say(
        "`.pt` files are unpacked in an isolated process that can do nothing else. Files that contain anything "
        "besides weights are rejected."
    )
    if server_options.mode() == "no-pickles":
        pickles = say("This server does not accept `torch.save` files (`.pt`, `.pth`, `.bin`, `.ckpt`).")
    return joined(
        " ",
        [
            say(
                "Upload all files of one model (weights, `config.json`, tokenizers), a zip archive of them, or a "
                "saved run. "
                "Each file can have at most {most:,} MB, and all files together at most {all:,} MB.",
                most=server_options.megabytes_of_a_file(),
                all=OURS.unpacked // MEGABYTE,
            ),
            pickles,
            say("Put larger files into a folder of checkpoints."),
        ],
    )


def _list(waiting: Waiting) -> None:
    rows = waiting.files[:MOST_ROWS]
    for file in rows:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(say("{title} ({name})", title=drawing.plain(file.name), name=_size(file.size)), width="stretch")
            st.button(
                say("Leave it out"), key=f"{EMPTY}_{file.number}", on_click=_leave_out, args=(file,), type="tertiary"
            )
    if more := len(waiting.files) - len(rows):
        st.caption(say_n("and {n} more file", "and {n} more files", more))


def _size(n_bytes: int) -> str:
    if n_bytes < 10_000:
        return say_n("{n:,} byte", "{n:,} bytes", n_bytes)
    if n_bytes < MEGABYTE // 10:
        return say("{n:,.0f} KB", n=n_bytes / 1024)
    return say("{n:,.1f} MB", n=n_bytes / MEGABYTE)


def _take() -> None:
    """Callback: the browser has sent files."""
    files = [file for file in st.session_state.get(_key()) or () if hasattr(file, "getbuffer")]
    session_uploads.reader().expect()
    st.session_state[FILES] = st.session_state.get(FILES, 0) + 1  # an empty uploader in its place
    try:
        st.session_state[WAITING] = session_uploads.take_over(files, _waiting())
        st.session_state.pop(REFUSED, None)
    except CheckpointError as error:
        st.session_state[REFUSED] = error.sentence


def _leave_out(file: File) -> None:
    st.session_state[WAITING] = session_uploads.without(_waiting(), file)
    st.session_state.pop(REFUSED, None)


def _empty() -> None:
    session_uploads.store().forget(_waiting().token)
    st.session_state.pop(WAITING, None)
    st.session_state.pop(REFUSED, None)


def _forget(name: str) -> None:
    session_uploads.forget(name)
    st.session_state[session.MODEL] = None
    session.change_model()


def _read(waiting: Waiting) -> bool:
    """Have the files read, with a progress bar; returns whether they were accepted."""
    try:
        job = session_uploads.submit(waiting)
        _wait(waiting, job)
        st.session_state[ARRIVED] = session_uploads.keep(waiting, job.seen)
        st.session_state.pop(WAITING, None)
        st.session_state.pop(REFUSED, None)
    except (CheckpointError, BusyError) as error:
        st.session_state[REFUSED] = error.sentence
        return False
    return True


def _wait(waiting: Waiting, job: Job) -> None:
    """Draw how far reading is, until it is over; if nobody waits any more, it is ended."""
    place = st.empty()
    try:
        while not job.over.wait(DRAW_AGAIN_SECONDS):
            if job.seen.state == "waiting":
                before = session_uploads.queue().before(waiting.token)
                place.progress(0.0, say_n("{n} upload is ahead of yours", "{n} uploads are ahead of yours", before))
            else:
                done = job.seen.so_far or Done()
                name = drawing.plain(done.name) or "…"
                place.progress(min(done.done / max(done.most, 1), 1.0), say("Reading {name}", name=name))
        place.empty()
    finally:
        session_uploads.queue().withdraw(waiting.token)
        if job.began:
            job.over.wait()


def _waiting() -> Waiting:
    found: Waiting = st.session_state.get(WAITING) or Waiting()
    return found


def _key() -> str:
    return f"{FILES}_{st.session_state.get(FILES, 0)}"


def _why_off() -> str:
    said = server_options.said(None, server_options.ENVIRONMENT, server_options.OPTION)
    if said is not None and said not in server_options.MODES:
        return say(
            "This server accepts no uploads, because its upload setting is “{found}”. The setting must be one of "
            "{modes}.",
            found=drawing.plain(said[:40]),
            modes=", ".join(server_options.MODES),
        )
    if not can_limit():
        return say(
            "This server accepts no uploads, because its system cannot limit the resources used to read a file. "
            "Put files into a folder of checkpoints instead."
        )
    return say(
        "This server accepts no uploads. Its operator can allow them with `-- {option} on`.",
        option=server_options.OPTION,
    )


class UploadsSource(ImportersSource):
    """Uploads; they open like checkpoints in a folder."""

    def own(self) -> dict[str, Entry]:
        """This session's uploads."""
        return session_uploads.own()

    def at(self, name: str) -> Entry | None:
        """An upload."""
        return session_uploads.at(name)

    def opens(self, entry: Entry) -> bool:
        """Uploads, of which some are checkpoints of this program."""
        return session_uploads.is_name(entry.name) and entry.holds in session_uploads.IMPORTED

    def brought(self, name: str) -> bool:
        """All of them."""
        return session_uploads.is_name(name)

    def arrive(self) -> None:
        """The one that was read last."""
        session.arrive(ARRIVED)

    def offer(self, entry: Entry | None) -> None:
        """The drop zone, collapsed once something is opened, or why there is none."""
        if server_options.mode() == "off":
            st.caption(_why_off())
            return
        said = say("Upload a model") if entry is None else say("Upload another model")
        with st.expander(said, expanded=entry is None, icon=":material/upload_file:"):
            _zone()

    def about(self, entry: Entry) -> None:
        """Who can see an upload, how long, and which files were left out."""
        if not session_uploads.is_name(entry.name):
            return
        said = [
            say("Uploaded. Only people with this page's address can see the model."),
            say("The upload is deleted after {minutes} minutes without use.", minutes=round(KEPT_SECONDS / 60)),
        ]
        upload = session_uploads.store().find(entry.name.removeprefix(session_uploads.NAME))
        if left := () if upload is None else upload.left_out:
            names = joined(", ", [drawing.plain(name) for name in left[:MOST_ROWS]])
            said.append(
                say_n("{n} file was not used: {names}.", "{n} files were not used: {names}.", len(left), names=names)
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(joined(" ", said))
            if entry.name in st.session_state.get(session_uploads.OWN, ()):
                st.button(
                    say("Delete upload"), key=FORGET, on_click=_forget, args=(entry.name,), icon=":material/delete:"
                )

    def label(self, entry: Entry) -> str | None:
        """Whose it is."""
        return say("{name} (uploaded)", name=entry.title) if session_uploads.is_name(entry.name) else None

    def explain(self) -> None:
        """Nothing: they lie in no folder of checkpoints."""

    def gone(self, name: str, instead: str) -> Sentence | None:
        """Uploads are kept for a while."""
        if not session_uploads.is_name(name):
            return None
        said = say(
            "The uploaded model is no longer on this server, or the server does not accept uploads; {shown} is shown "
            "instead.",
            shown=instead,
        )
        return replicas.gone(said)


SOURCE = UploadsSource()
