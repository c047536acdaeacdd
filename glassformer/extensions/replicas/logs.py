"""The log of the server: lines to read, or a JSON object a line with `GLASSFORMER_LOG=json`.

An object says when, how grave, which part, and what; of an error also its type and where it was raised, but not what
it says: that may quote what a visitor typed. Of a longer message only the first line, and no requests, whose lines
hold addresses of machines, tokens and sentences.

Knows nothing of Streamlit.
"""

import json
import logging
import os
import threading
import traceback
from datetime import UTC, datetime
from typing import Any, Final

ENVIRONMENT: Final = "GLASSFORMER_LOG"
REQUESTS: Final = ("uvicorn.error", "uvicorn.access")  # what is no warning there is a request, or that it starts
_LINES: Final = "%(asctime)s %(name)s: %(message)s"


class AsJson(logging.Formatter):
    """One event, one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The object as text, without a line break."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {"time": when, "level": record.levelname.lower(), "logger": record.name}
        kind, _, where = record.exc_info or (None, None, None)
        told["message"] = (record.getMessage() if kind is None else str(record.msg)).partition("\n")[0]
        if kind is not None:
            frames = traceback.extract_tb(where)
            told |= {"error": kind.__name__, "where": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}
        return json.dumps(told, ensure_ascii=False)


def begin() -> None:
    """Have this process log; called before the server configures its log and after, which keeps the filters alone."""
    logging.getLogger("glassformer").setLevel(logging.INFO)
    logging.basicConfig(format=_LINES)
    if os.environ.get(ENVIRONMENT) != "json":
        return
    # Whatever formatter a handler has or gets: Streamlit gives its and uvicorn's loggers new ones at any time.
    logging.StreamHandler.format = lambda _, record: AsJson().format(record)  # type: ignore[method-assign,assignment]
    logging.captureWarnings(True)
    threading.excepthook = _thread_failed
    for name in REQUESTS:
        logging.getLogger(name).addFilter(_is_grave)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit and failed.exc_value is not None:
        raised = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        logging.getLogger("glassformer").error("A thread ended by an error", exc_info=raised)


def _is_grave(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
