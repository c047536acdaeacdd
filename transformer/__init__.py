"""Public names of the Glassformer library, imported on use (`load`, `run`, `score`, `Query`, `Trace` and more).

Run, inspect and change encoder-decoder, encoder-only and decoder-only Transformers.

    import transformer

    checkpoint = transformer.load("checkpoints/zh-en")
    trace = checkpoint.run("我喜欢喝咖啡。")
    trace.output_text, trace.cross.shape, trace.step(2).candidates

To understand the model, read config, anatomy, masks, positions, attention, layers, transformer in
`transformer/model/`, in that order.
"""

from typing import Any

from transformer.extensions import extensions as _extensions
from transformer.extensions import imported, install, renamed

__version__ = "0.2.0"
# Where the library's own names are, whose types `__init__.pyi` has; extensions have more.
_OWN = {
    "checkpoint.curve": ("Curve", "load_curve"),
    "checkpoint.load": ("Checkpoint",),
    "checkpoint.opening": ("load",),
    "errors": ("GlassformerError",),
    "model.config": ("ModelConfig",),
    "model.transformer": ("Transformer",),
    "runs.query": ("Beam", "Greedy", "Query", "Sampling"),
    "runs.run_file": ("load_run",),
    "runs.running": ("run", "run_batch"),
    "runs.teacher_forcing": ("Score", "score"),
    "runs.trace": ("RowLabel", "Step", "Trace"),
}
_NAMES = {name: f"{__name__}.{module}:{name}" for module, names in _OWN.items() for name in names}
install()


def __getattr__(name: str) -> Any:
    """A public name, imported on first use."""
    if name == "__all__":
        return __dir__()
    known = _NAMES if name in _NAMES or name.startswith("_") else _all()
    if name not in known:
        if renamed(f"{__name__}.{name}"):
            return imported(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return imported(known[name])


def __dir__() -> list[str]:
    return sorted(_all())


def _all() -> dict[str, str]:
    """Where each public name is."""
    return {name: where for one in _extensions() for name, where in one.names.items()} | _NAMES
