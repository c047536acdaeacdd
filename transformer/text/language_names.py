"""The English names of the languages that multilingual families know.

A family's code is one of ISO 639, as a rule with a script (ISO 15924) or a country behind it: `zho_Hans`, `pt_XX`.
The names are data, in a file of their own.
"""

from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".tsv")
_SEVERAL_SCRIPTS = frozenset({"ace", "arb", "bjn", "kas", "knc", "min", "taq", "zho"})


def language_name(code: str) -> str:
    """The English name of a family's code; the code itself if it is none of these.

    Example:
        >>> language_name("deu_Latn"), language_name("zho_Hans"), language_name("pt_XX")
        ('German', 'Chinese, simplified', 'Portuguese')
    """
    language, _, behind = code.partition("_")
    name = _names().get(language)
    if name is None:
        return code
    script = _names().get(behind) if language in _SEVERAL_SCRIPTS else None
    return name if script is None else f"{name}, {script}"


@cache
def _names() -> dict[str, str]:
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)
