"""Pickles are opened in this process, as in the tests of importers."""

from tests.extensions.weight_files.library.conftest import opened_here as opened_here
