"""A hub on the loopback that answers as the Hugging Face Hub does, for the real `huggingface_hub`."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GATED = "closed/gated"


class StandInHub(ThreadingHTTPServer):
    """Serves the models in a folder: `ORG--NAME/FILE`, all at one commit, whose other names are `main` and `v1`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder = folder
        self.asked: list[str] = []  # the files that were fetched
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def running(folder: Path) -> Iterator[StandInHub]:
    """Run one while the block does."""
    hub = StandInHub(folder)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()


class _Answers(BaseHTTPRequestHandler):
    server: StandInHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) == 6:
            self._about("/".join(parts[2:4]), parts[5])
        elif len(parts) == 5 and parts[2] == "resolve":
            self._file("/".join(parts[:2]), parts[3], parts[4])
        else:
            self._send(404, b"{}")

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def _about(self, name: str, revision: str) -> None:
        folder = self._folder(name, revision)
        if folder is not None:
            files = [{"rfilename": one.name, "size": one.stat().st_size} for one in sorted(folder.iterdir())]
            said = {"id": name, "modelId": name, "sha": COMMIT, "siblings": files, "tags": [], "private": False}
            self._send(200, json.dumps(said).encode())

    def _file(self, name: str, revision: str, file: str) -> None:
        folder = self._folder(name, revision)
        if folder is None:
            return
        if not (folder / file).is_file():
            self._send(404, b"", **{"X-Error-Code": "EntryNotFound"})
            return
        content = (folder / file).read_bytes()
        if self.command == "GET":
            self.server.asked.append(file)
        self._send(200, content, ETag=f'"{hashlib.sha256(content).hexdigest()}"', **{"X-Repo-Commit": COMMIT})

    def _folder(self, name: str, revision: str) -> Path | None:
        """The model's folder; None if this has answered that there is none."""
        folder = self.server.folder / name.replace("/", "--")
        refused = {GATED: (403, "GatedRepo"), "busy/hub": (500, "")}.get(name)
        if refused is None and not folder.is_dir():
            refused = (401, "RepoNotFound")
        if refused is None and revision not in ("main", "v1", COMMIT):
            refused = (404, "RevisionNotFound")
        if refused is None:
            return folder
        status, code = refused
        self._send(status, b"", **({"X-Error-Code": code} if code else {}))
        return None

    def _send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
