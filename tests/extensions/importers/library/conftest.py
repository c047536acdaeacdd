"""Pickles are opened in this process, as in the tests of files of weights, and each once."""

import pytest

from tests.extensions.weight_files.conftest import forked as forked
from tests.extensions.weight_files.conftest import model as model
from tests.extensions.weight_files.conftest import opened_here as opened_here
from tests.extensions.weight_files.conftest import opened_once as opened_once
from tests.extensions.weight_files.conftest import started as started


@pytest.fixture(autouse=True)
def each_opened_once(opened_once):
    pass
