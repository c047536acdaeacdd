"""What tests of pages share."""

from tests.pages.conftest import *  # noqa: F403
