"""Extensions: parts of the product that can be deleted, and what each of them adds.

An extension is a folder whose `__init__` holds one `Extension`, called EXTENSION. It names what it adds as
"package.module:name", which is imported on first use, so a list of all extensions costs nothing.
`glassformer/extensions/__init__.py` lists them; a missing folder is skipped. Nothing outside an extension imports it:
the kernel calls `provided("sources")`, which asks each extension that has some.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

LISTED: Final = "glassformer.extensions"


@dataclass(frozen=True, order=True)
class Command:
    """A word of the command line."""

    place: int  # among all commands
    word: str
    about: str  # what it is for
    add: str  # "package.module:add", which declares its options; imported when it is called


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What one extension adds; each field but `name` and `needs` may be left out."""

    name: str  # of its folder
    needs: tuple[str, ...] = ()  # names of the extensions that it imports
    names: Mapping[str, str] = field(default_factory=dict)  # of `import transformer`: each with what it names
    modules: Mapping[str, str] = field(default_factory=dict)  # other names of its modules (`module_aliases`)
    pages: str = ""  # its pages and their places in the menu
    commands: tuple[Command, ...] = ()  # words of the command line
    tokenizers: str = ""  # those of other programs that a checkpoint may have
    formats: str = ""  # models in other formats than a checkpoint folder's
    readers: str = ""  # files and folders of other programs that importers read
    sources: str = ""  # where models come from, for the app
    changes: str = ""  # kinds of change inside the model
    address: str = ""  # query parameters of the whole app, besides those of a link
    components: Mapping[str, str] = field(default_factory=dict)  # in the browser: each with its module
    hides: str = ""  # whether a picture or a part is covered
    blocks: str = ""  # what is above, below or next to a page
    below: Mapping[str, str] = field(default_factory=dict)  # what a page shows, by its class: each with what draws more
    parts: str = ""  # a part of one of the kernel's pages
    heads: str = ""  # what it measures of heads, for the table of the page Attention
    shows: str = ""  # what draws a run in a notebook, as `Trace.show` calls it
    examines: str = ""  # how well a checkpoint is
    looks: str = ""  # fields of the view that are its own
    drafts: str = ""  # what proposes an output before the model checks it
    stores: str = ""  # where rooms of all servers are kept, if not in the memory of one
    server: str = ""  # HTTP routes, middlewares, and what starts and stops with the server


@cache
def extensions() -> tuple[Extension, ...]:
    """Every extension that is there, in the order of the list; one whose needs are not there is left out."""
    listed = import_module(LISTED).NAMES if find_spec("glassformer") else ()
    specs = {name: find_spec(f"{LISTED}.{name}") for name in listed}
    here = [name for name, spec in specs.items() if spec and spec.origin]  # what git leaves of a folder has no module
    found = [import_module(f"{LISTED}.{name}").EXTENSION for name in here]
    while left := [one for one in found if not {*one.needs} <= {other.name for other in found}]:
        found = [one for one in found if one not in left]
    return tuple(found)


def shipped() -> Path | None:
    """The folder of the checkpoints that come along with the app; None where there is only the library."""
    return import_module(LISTED).CHECKPOINTS if find_spec("glassformer") else None


@cache
def provided(name: str) -> tuple[Any, ...]:
    """What the extensions have for one field, such as "sources", imported, in the order of the list."""
    return tuple(imported(where) for one in extensions() if (where := getattr(one, name)))


def imported(where: str) -> Any:
    """The thing that "package.module:name" names, or the module that "package.module" does."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)
