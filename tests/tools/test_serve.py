"""Servers start, tell why when they do not, and never outlive their block."""

from contextlib import suppress

import pytest

from tools.serve import ServerFailedError, serve


def test_a_server_is_stopped_when_its_block_fails(tmp_path):
    (tmp_path / "app.py").write_text("import streamlit as st\nst.text('hello')\n", encoding="utf-8")
    with suppress(ZeroDivisionError), serve(tmp_path / "app.py", log=tmp_path / "app.log") as server:
        assert server.process.poll() is None
        assert str(server.port) in server.url
        1 / 0  # noqa: B018
    assert server.process.poll() is not None


def test_a_server_that_ends_says_why(tmp_path):
    with pytest.raises(ServerFailedError, match=r"none\.py"), serve("none.py", log=tmp_path / "app.log"):
        pass
