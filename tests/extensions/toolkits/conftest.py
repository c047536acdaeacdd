"""Pickles are opened in this process, and each once, as in the tests of importers."""

from tests.extensions.importers.library.conftest import *  # noqa: F403
