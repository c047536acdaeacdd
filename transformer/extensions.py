"""Extensions: the record `Extension`, those that are there, lazy imports of what they add, aliases of modules.

Extensions are parts of the product that can be deleted. An extension is a folder whose `__init__` holds one
`Extension`, called EXTENSION. It names what it adds as "package.module:name", which is imported on first use, so a list
of all extensions costs nothing. `glassformer/extensions/__init__.py` lists them; a missing folder is skipped. Nothing
outside an extension imports it: the kernel calls `provided("sources")`, which asks each extension that has some.

A module of an extension can be imported under other names, too; it is the same module, whichever name is used. The
record's `modules` says so, for a module or a package and what is in it:

    modules={"transformer.doctor": "glassformer.extensions.doctor.library"}

A module that runs under its other name (`python -m`) is found as well.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
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
    modules: Mapping[str, str] = field(default_factory=dict)  # other names of its modules
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


_PREFIX = f"{__package__}."
# Modules of the library, each with the names that it, or a part of it, had before: they go on.
_MOVED = {
    "analysis": ("trying",),
    "analysis.alignment": ("analysis.alignment_scores",),
    "analysis.costs": ("analysis.stand_ins",),
    "analysis.one_weight": ("analysis.default_cell", "analysis.plain_attention", "analysis.worth_seeing"),
    "analysis.parameters": ("analysis.spectra",),
    "analysis.positions": ("analysis.position_study", "analysis.rotations"),
    "analysis.sampled_outputs": ("analysis.draws",),
    "analysis.significance": ("trying.verdicts",),
    "analysis.speed_gains": ("trying.gains",),
    "analysis.tiled_attention": ("analysis.tiles",),
    "analysis.word_merging": ("analysis.words",),
    "checkpoint.consistency": ("checkpoint.agreement",),
    "checkpoint.free_memory": ("checkpoint.progress", "checkpoint.room"),
    "checkpoint.opening": ("checkpoint.folder_format",),
    "checkpoint.parameter_layout": ("checkpoint.memory",),
    "checkpoint.save": ("checkpoint.tensorwriter",),
    "commands": ("commands.device",),
    "extensions": ("module_aliases",),
    "files.atomic_saves": ("checkpoint.exchange", "files.hidden", "files.staging_folders"),
    "files.untrusted_folder": ("files.files",),
    "i18n.catalogue": ("i18n.browser", "i18n.pseudo"),
    "i18n.sentence": ("i18n.numbers", "i18n.spacing", "i18n.tables"),
    "model.attention_features": ("model.features",),
    "model.attention_positions": ("model.distance", "model.order"),
    "model.attention_scores": ("model.scores",),
    "model.config_fields": (
        "model.checks",
        "model.config_generation",
        "model.config_ids",
        "model.config_layers",
        "model.config_writing",
    ),
    "model.module": ("model.dropout", "model.linear"),
    "model.sites": ("model.settings",),
    "model.taps": ("model.leaking",),
    "model.transformer": ("model.mlm_head", "model.output"),
    "runs.apply_interventions": ("runs.changing",),
    "runs.array_records": ("runs.map_tables", "runs.results"),
    "runs.distribution": ("analysis.reshaping", "analysis.sampling_stages", "runs.rules"),
    "runs.inputs": ("runs.reference", "runs.source", "runs.targets"),
    "runs.interventions.fields": ("runs.interventions.spelling",),
    "runs.interventions.targets": ("runs.interventions.where",),
    "runs.query": ("runs.model_protocols", "runs.runnable"),
    "runs.recording_pass": ("runs.recording",),
    "runs.running": ("runs.dynamic_batching", "runs.replay", "runs.together"),
    "runs.sentence_files": ("analysis.line_file", "runs.pairs"),
    "runs.teacher_forcing": ("analysis.at_once", "analysis.teacher_forced_pass"),
    "runs.trace": ("runs.labelled_maps",),
    "sandbox": ("confined",),
    "text.line_files": ("text.sentence_key",),
    "text.sentencepiece_check": ("text.probing", "text.protobuf"),
    "text.subword_sampling": ("text.sampling",),
    "text.tokenizer": ("text.normalise", "text.raw"),
}
MOVED = {_PREFIX + old: _PREFIX + new for new, before in _MOVED.items() for old in before}


def renamed(name: str) -> str | None:
    """The name of the module itself; None if this is not another name of a module."""
    if not name.startswith(_PREFIX):
        return None
    names = MOVED | {other: own for one in extensions() for other, own in one.modules.items()}
    other = max((other for other in names if f"{name}.".startswith(f"{other}.")), key=len, default=None)
    return None if other is None else names[other] + name.removeprefix(other)


class AliasFinder(MetaPathFinder, Loader):
    """Gives a module under its other names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What to import, if it is another name of a module that is there."""
        own = renamed(fullname)
        return ModuleSpec(fullname, self) if own and find_spec(own) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself."""
        module = import_module(renamed(spec.name) or "")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; Python has only written the alias into it, which is undone."""
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m` runs."""
        spec: Any = find_spec(renamed(fullname) or "")
        code: CodeType | None = spec.loader.get_code(spec.name)
        return code


def install() -> None:
    """Ask for aliases before files: a package's own folder would give its modules a second time."""
    sys.meta_path.insert(0, AliasFinder())
