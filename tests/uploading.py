"""A client without a browser that uploads files.

Written for and tried with Streamlit 1.67, like `raw_client`, whose protocol this speaks.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.raw_client import RawClient, Rerun, Widget

PAGE = "open"
READ, EMPTY, FORGET = "hand_in_read", "hand_in_empty", "hand_in_forget"
UPLOADER = "handed_files_"
HTTP_SECONDS = 400.0


@dataclass(frozen=True)
class Ended:
    """How handing in ended.

    Attributes:
        name: What the address calls the model; empty if it was refused.
        refused: What the page said of it.
        seconds: From the first byte until then.
    """

    name: str
    refused: str
    seconds: float


class Visitor(RawClient):
    """One visitor of the page where models are opened."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._url = url
        self.visit()

    def visit(self) -> Rerun:
        """Open the page."""
        return self.rerun(page=PAGE, query="")

    def put(self, name: str, content: bytes, *, file_id: str = "") -> tuple[int, str, str]:
        """Send one file to the endpoint; the status, what it answered, and the file's id."""
        file_id = file_id or str(uuid.uuid4())
        boundary = uuid.uuid4().hex
        shown = name.encode("utf-8", "surrogateescape").replace(b'"', b"%22").replace(b"\n", b"%0A")
        head = b'--%b\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n' % (boundary.encode(), shown)
        body = (
            head + b"Content-Type: application/octet-stream\r\n\r\n" + content + b"\r\n--%b--\r\n" % boundary.encode()
        )
        status, said = self.send(file_id, body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        return status, said, file_id

    def send(self, file_id: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """Send a body to the endpoint; the status and what it answered."""
        token = _token(self._url)
        request = urllib.request.Request(
            f"{self._url}/_stcore/upload_file/{self.session_id}/{file_id}",
            data=body,
            method="PUT",
            headers={"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, ConnectionError) as error:
            return 0, str(error)

    def give(self, files: Iterable[tuple[str, bytes]]) -> Rerun:
        """Send files, and tell the drop zone of them; they are then in its list.

        Raises:
            RuntimeError: The endpoint refused one.
        """
        infos = []
        for name, content in files:
            status, said, file_id = self.put(name, content)
            if status >= 300 or not status:
                raise RuntimeError(f"{status}: {said}")
            infos.append(UploadedFileInfo(name=name, size=len(content), file_id=file_id))
        uploader = self.widgets[self._uploaders()[-1]]
        state = FileUploaderState(uploaded_file_info=infos)
        return self._with(uploader, WidgetState(id=uploader.id, file_uploader_state_value=state))

    def click(self, key: str) -> Rerun:
        """Press a button of the page."""
        widget = self.widgets[key]
        return self._with(widget, WidgetState(id=widget.id, trigger_value=True))

    def hand_in(self, files: Iterable[tuple[str, bytes]]) -> Ended:
        """Send files and have them opened; how that ended. What was refused is still in the list."""
        began = time.perf_counter()
        try:
            result = self.give(files)
        except RuntimeError as error:
            return Ended("", str(error), time.perf_counter() - began)
        if READ in self.widgets and not result.errors:
            result = self.click(READ)
        seconds = time.perf_counter() - began
        if result.errors:
            return Ended("", "\n".join(result.errors).replace("\\", ""), seconds)
        name = parse_qs(self.query).get("model", [""])[0]
        self.visit()
        return Ended(name, "", seconds)

    def forget(self, name: str) -> None:
        """Have a model removed that this visitor handed in."""
        self.rerun(page=PAGE, query=urlencode({"model": name}))
        self.click(FORGET)
        self.visit()

    def empty(self) -> None:
        """Remove what waits in the list."""
        if EMPTY in self.widgets:
            self.click(EMPTY)

    def _uploaders(self) -> list[str]:
        """The keys of the uploaders that were drawn, the one that stands now at the end."""
        found = [key for key in self.widgets if key.startswith(UPLOADER)]
        return sorted(found, key=lambda key: int(key.removeprefix(UPLOADER)))

    def _with(self, widget: Widget, state: WidgetState) -> Rerun:
        return self.rerun(states=[state], fragment_id=widget.fragment_id)


def _token(url: str) -> str:
    with urllib.request.urlopen(f"{url}/_stcore/health", timeout=HTTP_SECONDS) as answer:
        cookie = answer.headers.get("Set-Cookie", "")
    return str(cookie.partition("=")[2].partition(";")[0])
