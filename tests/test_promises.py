"""The register of promises, `tests/PROMISES.md`, says what the tests keep, each promise once."""

from collections import Counter

from tests import promises


def test_each_module_promises_something_of_its_own_in_one_line():
    said = {module: promises.promise(module) for module in promises.modules()}
    assert [str(module) for module, one in said.items() if not one or len(one) > promises.LONGEST or "|" in one] == []
    assert [one for one, times in Counter(said.values()).items() if times > 1] == []


def test_the_register_is_what_the_modules_say():
    assert promises.FILE.read_text(encoding="utf-8") == promises.register(), "run python -m tests.promises"
