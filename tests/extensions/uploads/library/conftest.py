"""Pickles are opened in this process, as in the tests of importers."""

from tests.extensions.importers.library.conftest import opened_here as opened_here
