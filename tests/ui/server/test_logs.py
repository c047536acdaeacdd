"""The log as JSON: one line an event, and nothing that a visitor typed."""

import json
import logging
import sys

import pytest

from ui.server import logs


def record(message, *of, error=None):
    raised = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("glassformer.x", logging.INFO, "x.py", 1, message, of, raised)


def told(*of, **error):
    text = logs.AsJson().format(record(*of, **error))
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


@pytest.mark.parametrize("how", ["json", ""])
def test_only_where_it_is_asked_for(monkeypatch, capsys, how):
    monkeypatch.setenv(logs.ENVIRONMENT, how)
    root, ours, requests = (logging.getLogger(name) for name in ("", "streamlit.made", "uvicorn.error"))
    handlers = [logging.StreamHandler(sys.stderr) for _ in range(2)]
    monkeypatch.setattr(root, "handlers", handlers[:1])
    monkeypatch.setattr(ours, "handlers", handlers[1:])
    monkeypatch.setattr(requests, "filters", [])
    logs.begin()
    logs.begin()
    assert [isinstance(handler.formatter, logs.AsJson) for handler in handlers] == [how == "json"] * 2
    assert bool(requests.filter(record('127.0.0.1 - "WebSocket /?token=x" [accepted]'))) == (how != "json")
