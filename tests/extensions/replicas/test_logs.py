"""The log as JSON has one line for an event, and nothing that a visitor typed."""

import io
import json
import logging
import threading

import pytest

from glassformer.extensions.replicas import server_part


def record(message, *of, error=None):
    raised = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("glassformer.x", logging.INFO, "x.py", 1, message, of, raised)


def told(*of, **error):
    text = server_part.AsJson().format(record(*of, **error))
    assert "\n" not in text
    return json.loads(text)


def test_an_event_is_one_line():
    found = told("model run %d: %s", 3, "猫\ndefg")
    assert (found["level"], found["logger"], found["message"]) == ("info", "glassformer.x", "model run 3: 猫")
    assert found["time"].endswith("+00:00")


def test_an_error_says_where_it_is_and_not_what_it_quotes():
    try:
        raise ValueError("a visitor's sentence")
    except ValueError as error:
        found = told("failed for %s", "a visitor's name", error=error)
    assert (found["error"], found["message"]) == ("ValueError", "failed for %s")
    assert found["where"][-1].startswith(__file__)
    assert "visitor" not in json.dumps(found)


@pytest.fixture
def logs(monkeypatch):
    """A function that begins to log, and gives a logger a new handler; the process stays as it is."""
    monkeypatch.setattr(logging.StreamHandler, "format", logging.StreamHandler.format)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(logging, "captureWarnings", lambda _: None)

    def begun(name, how="json"):
        monkeypatch.setenv(server_part.ENVIRONMENT, how)
        server_part.begin()
        handler = logging.StreamHandler(io.StringIO())
        handler.setFormatter(logging.Formatter("%(message)s"))
        monkeypatch.setattr(logging.getLogger(name), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
        return handler.stream

    return begun


@pytest.mark.parametrize("how", ["json", ""])
def test_only_where_it_is_asked_for(monkeypatch, logs, how):
    requests = logging.getLogger("uvicorn.error")
    monkeypatch.setattr(requests, "filters", [])
    there = logs("streamlit.made", how)
    server_part.begin()
    logging.getLogger("streamlit.made").error("failed")
    assert there.getvalue().startswith("{") == (how == "json")
    assert bool(requests.filter(record('127.0.0.1 - "WebSocket /?token=x" [accepted]'))) == (how != "json")


def test_a_traceback_of_a_logger_that_gets_its_handler_later_is_one_object(logs):
    """As Streamlit does with those of uvicorn, each time its settings are read."""
    found = logs("uvicorn.made")
    try:
        raise ValueError("a visitor's sentence")
    except ValueError:
        logging.getLogger("uvicorn.made").exception("Exception in ASGI application\n")
    (line,) = found.getvalue().splitlines()
    assert (json.loads(line)["error"], json.loads(line)["message"]) == ("ValueError", "Exception in ASGI application")
    assert "visitor" not in line


def test_a_thread_that_fails_is_one_object(logs):
    found = logs("glassformer")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert json.loads(found.getvalue())["error"] == "ZeroDivisionError"
