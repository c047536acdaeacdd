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
# Modules of the library under names that they had before: they go on.
_MOVED = {
    "analysis.at_once": "analysis.teacher_forced_pass",
    "analysis.draws": "analysis.sampled_outputs",
    "analysis.reshaping": "analysis.sampling_stages",
    "analysis.spectra": "analysis.parameters",
    "analysis.tiles": "analysis.tiled_attention",
    "analysis.words": "analysis.word_merging",
    "analysis.worth_seeing": "analysis.default_cell",
    "checkpoint.agreement": "checkpoint.consistency",
    "checkpoint.memory": "checkpoint.parameter_layout",
    "checkpoint.room": "checkpoint.free_memory",
    "checkpoint.tensorwriter": "checkpoint.save",
    "confined": "sandbox",
    "files.files": "files.untrusted_folder",
    "files.hidden": "files.staging_folders",
    "i18n.numbers": "i18n.sentence",
    "i18n.tables": "i18n.sentence",
    "model.config_writing": "model.config_generation",
    "model.features": "model.attention_features",
    "model.leaking": "model.taps",
    "model.order": "model.attention_positions",
    "model.output": "model.mlm_head",
    "model.scores": "model.attention_scores",
    "runs.changing": "runs.apply_interventions",
    "runs.interventions.spelling": "runs.interventions.fields",
    "runs.interventions.where": "runs.interventions.targets",
    "runs.recording": "runs.recording_pass",
    "runs.results": "runs.array_records",
    "runs.runnable": "runs.model_protocols",
    "runs.targets": "runs.reference",
    "runs.together": "runs.dynamic_batching",
    "text.probing": "text.sentencepiece_check",
    "text.protobuf": "text.sentencepiece_check",
    "text.raw": "text.tokenizer",
    "text.sampling": "text.subword_sampling",
    "text.sentence_key": "text.line_files",
    "trying.gains": "trying.speed_gains",
    "trying.verdicts": "trying.significance",
}
MOVED = {_PREFIX + old: _PREFIX + new for old, new in _MOVED.items()}


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
