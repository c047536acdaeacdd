"""Our JavaScript does in a browser what the sentences of the tests in `javascript/` say."""

import functools
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from glassformer.components.custom_component import modules

HERE = Path(__file__).parent
TESTS = HERE / "javascript"
NAMES = {
    path.name: re.findall(r'^test\("(.+?)", ', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for path in sorted(TESTS.glob("*.js"))
    if path.name != "harness.js"
}
assert sum(map(len, NAMES.values())) > 30
RUN = """async (name) => {
  const { tests } = await import("./harness.js");
  tests.clear();
  await import(`./${name}`);
  const results = {};
  for (const [sentence, run] of tests) {
    try { await run(); results[sentence] = ""; } catch (error) { results[sentence] = error.stack; }
  }
  return results;
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def results(profile, tmp_path_factory):
    """What became of each test, by file and name: nothing, or what went wrong.

    The tests import our modules from where they lie in the repository, so the page has them there as well.
    """
    folder = tmp_path_factory.mktemp("modules")
    beside = folder / TESTS.relative_to(HERE.parents[1])
    shutil.copytree(TESTS, beside)
    (beside / "index.html").write_text("<!doctype html><title>Tests</title>", encoding="utf-8")
    for name, text in modules().items():
        (folder / "glassformer" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "glassformer" / name).write_text(text, encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = profile.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/{beside.relative_to(folder).as_posix()}/index.html")
        found = {name: page.evaluate(RUN, name) for name in NAMES}
        page.close()
        server.shutdown()
    return found


def test_javascript(results):
    assert {file: list(found) for file, found in results.items()} == NAMES  # every test is reported
    faults = {(file, name): fault for file, found in results.items() for name, fault in found.items() if fault}
    assert faults == {}
