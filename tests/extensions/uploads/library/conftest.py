"""Pickles are opened in this process, as in the tests of importers."""

from tests.extensions.weight_files.conftest import opened_here as opened_here
