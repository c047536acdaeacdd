"""Names that documents give are there, whatever was imported before; each package in its own process."""

import json
import re
from itertools import groupby

from glassformer.extensions import NAMES
from tests.afresh import run_afresh
from tests.source_code import ROOT
from transformer.extensions import extensions

FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCS = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
STUB = (ROOT / "transformer" / "__init__.pyi").read_text(encoding="utf-8")
NAMED = set(re.findall(r"\btransformer(?:\.[A-Za-z_]\w*)+", DOCS))
for module, names in re.findall(r"^ *from (transformer[\w.]*|glassformer) import (.+)$", DOCS, flags=re.MULTILINE):
    NAMED |= {f"{module}.{name.strip()}" for name in names.split(",")}
PUBLIC = {f"transformer.{name}" for name in re.findall(r" as (\w+)$", STUB, flags=re.MULTILINE)}
PUBLIC |= {f"transformer.{name}" for one in extensions() for name in one.names}
# Of earlier versions, and of modules that documents name without an import.
EARLIER = {
    *("transformer.analysis.compare", "transformer.analysis.differences.paired", "transformer.analysis.parameters"),
    *("transformer.analysis.parameters.spectrum", "transformer.checkpoint.snapshots.moments"),
    *(f"transformer.corpus.{name}" for name in ("conditions", "folder", "measuring", "queries", "scores", "tables")),
    *("transformer.doctor.examination.examine", "transformer.importers", "transformer.lessons"),
    *("transformer.runs.interventions.ZeroHead", "transformer.training.tasks", "glassformer.charts.number_spread"),
    *("glassformer.charts.losses", "glassformer.charts.film"),
}
UNKNOWN = "transformer.nothing"
EACH = """
import json, os, sys
from pkgutil import resolve_name
import numpy, torch

for names in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        for name in names:
            try:
                resolve_name(name)
            except BaseException as error:
                print(name, file=sys.stdout, flush=True)
                print(name, repr(error), file=sys.stderr)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_each_name_is_there_whatever_was_imported_before():
    names = NAMED | PUBLIC | EARLIER
    assert {"transformer.doctor.watch", "transformer.load", "transformer.corpus.tables.CorpusLine"} <= names
    public, others = sorted(PUBLIC), sorted({*names, UNKNOWN} - PUBLIC)
    by_package = [list(some) for _, some in groupby(others, lambda name: name.split(".")[:2])]
    asked = [public, public[::-1], ["glassformer.charts.grammar"], *by_package]  # that one was imported only by others
    found = run_afresh(EACH, json.dumps(asked))
    unknown, are_all_here = found.stdout.split(), {one.name for one in extensions()} == set(NAMES)
    assert unknown == [UNKNOWN] or (UNKNOWN in unknown and not are_all_here), found.stderr[-3_000:]
