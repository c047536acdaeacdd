"""Pickles are opened in this process, as in the tests of files of weights."""

from tests.extensions.weight_files.library.conftest import forked as forked
from tests.extensions.weight_files.library.conftest import model as model
from tests.extensions.weight_files.library.conftest import opened_here as opened_here
from tests.extensions.weight_files.library.conftest import started as started
