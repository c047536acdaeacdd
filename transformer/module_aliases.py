"""Names under which modules of extensions can be imported, too: the same module, whichever name is used.

An extension's `modules` says so, for a module or a package and what is in it:

    modules={"transformer.doctor": "glassformer.extensions.doctor.library"}

A module that runs under its other name (`python -m`) is found as well.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from transformer.extensions import extensions

_PREFIX = f"{__package__}."
# Modules of the library, each with the names that it, or a part of it, had before: they go on.
_MOVED = {
    "analysis": ("trying",),
    "analysis.alignment": ("analysis.alignment_scores",),
    "analysis.one_weight": ("analysis.default_cell", "analysis.worth_seeing"),
    "analysis.parameters": ("analysis.spectra",),
    "analysis.positions": ("analysis.position_study", "analysis.rotations"),
    "analysis.sampled_outputs": ("analysis.draws",),
    "analysis.sampling_stages": ("analysis.reshaping",),
    "analysis.significance": ("trying.verdicts",),
    "analysis.speed_gains": ("trying.gains",),
    "analysis.teacher_forced_pass": ("analysis.at_once",),
    "analysis.tiled_attention": ("analysis.tiles",),
    "analysis.word_merging": ("analysis.words",),
    "checkpoint.consistency": ("checkpoint.agreement",),
    "checkpoint.free_memory": ("checkpoint.progress", "checkpoint.room"),
    "checkpoint.parameter_layout": ("checkpoint.memory",),
    "checkpoint.save": ("checkpoint.tensorwriter",),
    "commands": ("commands.device",),
    "files.atomic_saves": ("checkpoint.exchange", "files.hidden", "files.staging_folders"),
    "files.untrusted_folder": ("files.files",),
    "i18n.catalogue": ("i18n.browser", "i18n.pseudo"),
    "i18n.sentence": ("i18n.numbers", "i18n.tables"),
    "model.attention_features": ("model.features",),
    "model.attention_positions": ("model.order",),
    "model.attention_scores": ("model.scores",),
    "model.config_fields": (
        "model.checks",
        "model.config_generation",
        "model.config_ids",
        "model.config_layers",
        "model.config_writing",
    ),
    "model.sites": ("model.settings",),
    "model.taps": ("model.leaking",),
    "model.transformer": ("model.mlm_head", "model.output"),
    "runs.apply_interventions": ("runs.changing",),
    "runs.array_records": ("runs.results",),
    "runs.dynamic_batching": ("runs.together",),
    "runs.inputs": ("runs.reference", "runs.source", "runs.targets"),
    "runs.interventions.fields": ("runs.interventions.spelling",),
    "runs.interventions.targets": ("runs.interventions.where",),
    "runs.model_protocols": ("runs.runnable",),
    "runs.recording_pass": ("runs.recording",),
    "runs.sentence_files": ("analysis.line_file", "runs.pairs"),
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
