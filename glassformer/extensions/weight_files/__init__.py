"""Files of weights: safetensors, torch.save without unpickling here, and NumPy's arrays; read `weights` first."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="weight_files",
    modules={
        f"transformer.importers.{name}": f"glassformer.extensions.weight_files.{now}"
        for name, now in (
            ("npz", "weights"),
            ("parametrised", "state_dict_search"),
            ("wrapped", "state_dict_search"),
            ("pickle_child", "pickle_worker"),
            *((name, name) for name in ("pickles", "weights")),
        )
    },
)
