"""The rules of style ask nothing of the whole page at every change."""

import re

from tools.serve import ROOT

STYLED = [path for path in sorted((ROOT / "glassformer").rglob("*")) if path.suffix in {".py", ".css"}]
# What holds all charts, or may: with such an anchor the browser asks again whenever anything comes anywhere.
WHOLE_PAGE = re.compile(r"""(?:^|[\s,>+~])(?:body|:root[^\s,{]*|:--(?:app|main|main-block))?(?::not\()?:has\((?!\))""")
INSIDE = re.compile(r"\.st-key-(?:page_head[^,{]*|chosen) > :?$")


def asking(text: str) -> list[str]:
    """Selectors with `:has()` whose anchor holds the whole page, or any element."""
    return [
        text[max(0, found.start() - 60) : found.end() + 20]
        for found in WHOLE_PAGE.finditer(text)
        if not INSIDE.search(text[: found.end() - len(":has(")])
    ]


def test_no_rule_asks_what_the_whole_page_holds():
    found = {path.name: asking(path.read_text(encoding="utf-8")) for path in STYLED}
    assert {name: rules for name, rules in found.items() if rules} == {}


def test_such_a_rule_is_found():
    rules = [":--app:has(.st-key-bar) p {}", "body:not(:has(p)) > a {}", ":root.dark :--app:has(p), b {}"]
    assert all(asking(rule) for rule in rules)
    assert not asking(".st-key-menu details:has([aria-current]) > summary {}")
