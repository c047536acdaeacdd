"""Extensions that are there are listed, and what is gone or needs it is passed over."""

import pytest

from transformer import extensions as module
from transformer.extensions import extensions, imported, provided

RECORD = """from transformer.extensions import Extension

EXTENSION = Extension(name={name!r}, needs={needs!r}, looks={looks!r})
"""


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A list of four: one that is there, one that needs one that is gone, one of which only a cache is left."""
    folder = tmp_path / "a_list_of_extensions"
    for name, needs in (("there", ()), ("needs_gone", ("gone",)), ("needs_that", ("needs_gone",))):
        (folder / name).mkdir(parents=True)
        text = RECORD.format(name=name, needs=needs, looks=f"a_list_of_extensions.{name}:EXTENSION")
        (folder / name / "__init__.py").write_text(text)
    (folder / "left_over" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text('NAMES = ("left_over", "needs_that", "there", "gone", "needs_gone")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "LISTED", folder.name)
    extensions.cache_clear()
    provided.cache_clear()
    yield
    extensions.cache_clear()
    provided.cache_clear()


@pytest.mark.usefixtures("listed")
def test_what_is_gone_and_what_needs_it_is_passed_over_as_is_a_folder_without_a_module():
    assert [one.name for one in extensions()] == ["there"]
    assert [one.name for one in provided("looks")] == ["there"]
    assert provided("drafts") == ()


def test_what_is_drawn_below_names_classes_and_functions_that_are_there():
    below = [pair for one in extensions() for pair in one.below.items()]
    assert below or not extensions()  # of a kernel alone
    for shown, draws in below:
        assert isinstance(imported(shown), type)
        assert callable(imported(draws))
