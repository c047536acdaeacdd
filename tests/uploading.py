"""A client without a browser that uploads files.

Written for and tried with Streamlit 1.67, like `raw_client`, whose protocol this speaks.
"""

import urllib.error
import urllib.request
import uuid
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.raw_client import RawClient

READ, EMPTY, FORGET = "hand_in_read", "hand_in_empty", "hand_in_forget"
UPLOADER = "handed_files_"
HTTP_SECONDS = 400.0


class Ended(NamedTuple):
    """How handing in ended: what the address calls the model, empty if it was refused, and what the page said then."""

    name: str
    refused: str


class Visitor(RawClient):
    """One visitor of the page where models are opened."""

    def __init__(self, url):
        super().__init__(url)
        self._url = url
        self.visit()

    def visit(self, query=""):
        """Open the page."""
        return self.rerun(page="open", query=query)

    def put(self, name, content, *, file_id=""):
        """Send one file to the endpoint; the status, what it answered, and the file's id."""
        file_id, boundary = file_id or str(uuid.uuid4()), uuid.uuid4().hex
        shown = name.encode("utf-8", "surrogateescape").replace(b'"', b"%22").replace(b"\n", b"%0A")
        body = b"\r\n".join(
            (
                f"--{boundary}".encode(),
                b'Content-Disposition: form-data; name="file"; filename="%b"' % shown,
                b"Content-Type: application/octet-stream",
                b"",
                content,
                f"--{boundary}--\r\n".encode(),
            )
        )
        return *self.send(file_id, body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}), file_id

    def send(self, file_id, body, headers):
        """Send a body to the endpoint; the status, 0 where the connection breaks, and what it answered."""
        with urllib.request.urlopen(f"{self._url}/_stcore/health", timeout=HTTP_SECONDS) as answer:
            token = answer.headers.get("Set-Cookie", "").partition("=")[2].partition(";")[0]
        headers = {"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}", **headers}
        place = f"{self._url}/_stcore/upload_file/{self.session_id}/{file_id}"
        try:
            request = urllib.request.Request(place, data=body, method="PUT", headers=headers)
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (urllib.error.URLError, ConnectionError) as error:
            return 0, str(error)

    def hand_in(self, files):
        """Send files and have them opened; what was refused is still in the list."""
        infos = []
        for name, content in files:
            status, said, file_id = self.put(name, content)
            if not 0 < status < 300:
                return Ended("", f"{status}: {said}")
            infos.append(UploadedFileInfo(name=name, size=len(content), file_id=file_id))
        uploaders = [key for key in self.widgets if key.startswith(UPLOADER)]
        newest = max(uploaders, key=lambda key: int(key.removeprefix(UPLOADER)))
        result = self._set(newest, file_uploader_state_value=FileUploaderState(uploaded_file_info=infos))
        if READ in self.widgets and not result.errors:
            result = self._set(READ, trigger_value=True)
        if result.errors:
            return Ended("", "\n".join(result.errors).replace("\\", ""))
        name = parse_qs(self.query).get("model", [""])[0]
        self.visit()
        return Ended(name, "")

    def forget(self, name):
        """Have a model removed that this visitor handed in."""
        self.visit(urlencode({"model": name}))
        self._set(FORGET, trigger_value=True)
        self.visit()

    def empty(self):
        """Remove what waits in the list."""
        if EMPTY in self.widgets:
            self._set(EMPTY, trigger_value=True)

    def _set(self, key, **value):
        widget = self.widgets[key]
        return self.rerun(states=[WidgetState(id=widget.id, **value)], fragment_id=widget.fragment_id)
