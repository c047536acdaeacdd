"""Pickles are opened in this process, as in the tests of files of weights, and each once."""

import pytest

from tests.extensions.weight_files.conftest import *  # noqa: F403


@pytest.fixture(autouse=True)
def each_opened_once(opened_once):
    pass
