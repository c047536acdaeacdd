"""Pickles are opened in this process, and each once, as in the tests of importers."""

from tests.extensions.importers.library.conftest import each_opened_once as each_opened_once
from tests.extensions.weight_files.conftest import forked as forked
from tests.extensions.weight_files.conftest import opened_here as opened_here
from tests.extensions.weight_files.conftest import opened_once as opened_once
from tests.extensions.weight_files.conftest import started as started
