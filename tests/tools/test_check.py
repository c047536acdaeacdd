"""`make check` runs the tests nearest to a change first, and counts those for which there is no time."""

import re
import subprocess
import sys
from functools import cache

import pytest

from tools import check

PARTS = re.compile(
    r"(app|main|pages|tools|transformer|glassformer\.(charts|masks|components|extensions\.drafts))\b"
    r"|tests\.(conftest|tools|glassformer\.charts|extensions\.drafts|transformer\.model|pages)\b"
    r"|tests\.browser\.(figures|test_(charts|javascript))"
)


@pytest.fixture(scope="module", autouse=True)
def some_parts():
    """Fewer modules than there are, as all of them take seconds to parse."""
    whole = check.modules()
    check.importers.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "modules", cache(lambda: {name: one for name, one in whole.items() if PARTS.match(name)}))
        patch.setattr(check, "MOST_FILES", 40)
        yield
    check.importers.cache_clear()


def before_the_source(changes):
    return check.nearest(changes)[: -len(check.OF_SOURCE)]


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("glassformer/charts/grid.py", "tests/glassformer/charts/test_grid.py"),
        ("glassformer/extensions/drafts/drafter.py", "tests/extensions/drafts/"),
        ("transformer/model/rotary.py", "tests/transformer/model/"),
        ("glassformer/masks/mask_panels.py", "tests/pages/test_masks.py"),
        ("pages/explore/masks.py", "tests/pages/test_masks.py"),
        ("glassformer/components/flow/view.js", "tests/browser/test_javascript.py"),
        ("tests/tools/test_check.py", "tests/tools/test_check.py"),
    ],
)
def test_the_nearest_test_is_first(changed, first):
    assert before_the_source([changed])[0].startswith(first)


def test_what_is_near_is_chosen_by_fixtures_too_and_is_not_more_than_can_be_collected():
    for changed in ("transformer/model/attention.py", "tests/browser/figures.py"):  # a browser is slow
        assert not [one for one in before_the_source([changed]) if "browser" in one]
    assert "tests/browser/test_javascript.py" in before_the_source(["tests/browser/test_javascript.py"])
    near = before_the_source(["tests/extensions/drafts/conftest.py", "tests/pages/conftest.py"])
    assert "tests/pages/test_masks.py" in near
    assert before_the_source(["LICENSE"]) == []
    assert len(before_the_source(["transformer/errors.py"])) == check.MOST_FILES


@pytest.mark.parametrize(("seconds", "n_left", "fails"), [(60, 0, True), (0, 3, False)])
def test_what_is_not_reached_is_counted(tmp_path, seconds, n_left, fails):
    tests = tmp_path / "test_three.py"
    tests.write_text(f"def test_one(): pass\ndef test_two(): assert {not fails}\ndef test_three(): pass\n")
    command = [sys.executable, "-m", "tools.check", "--seconds", str(seconds), "--files", str(tests)]
    done = subprocess.run(command, cwd=check.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == (fails and not n_left), done.stdout
    assert (f"left: {n_left}" in done.stdout) == bool(n_left)


def test_a_commit_that_is_not_there_is_one_sentence():
    with pytest.raises(SystemExit, match="git says"):
        check.changed("no-such-commit")
