"""The Checkpoints page says of another program's file which page opens it."""

from glassformer.runs import loading
from tests.pages.conftest import CHECKPOINTS
from tests.pages.test_checkpoints import text, unescaped


def test_a_file_of_another_program_has_a_page_that_opens_it(open_page, tmp_path, monkeypatch):
    (tmp_path / "lesson.pt").touch()
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(CHECKPOINTS, model="reverse")
    assert "lesson.pt** from another program: see the “Open a checkpoint” page" in unescaped(text(test))
