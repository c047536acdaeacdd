"""Table of what BERT, GPT-2, T5, BART and LLaMA are made of, beside the open model; below the diagram of Inside.

What a family has comes from its importer's record (`folder.FAMILIES`), so the table says what would be computed. The
sizes and their sources are in `known_models.toml`. Models of one family differ: later LLaMAs share key-value heads, a
later T5 has gated feed-forward networks.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glassformer.inside.features import ACTIVATIONS, heads
from glassformer.state.fields import Look, flag
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from glassformer.inside.model.model_pictures import OpenModel

POSITIONS: Final[Mapping[str, Sentence]] = {
    "sinusoidal": say("sinusoids, added"),
    "learned": say("a learned table, added"),
    "rotary": say("rotation of q and k"),
    "relative": say("a learned bias on scores"),
    "alibi": say("a penalty on scores (ALiBi)"),
    "none": say("none", about="positions"),
}
SEES: Final[Mapping[str, Sentence]] = {
    "encoder": say("encoder: all"),
    "decoder": say("decoder: earlier tokens"),
    "cross": say("decoder: the source"),
}
NORM_PLACES: Final[Mapping[str, Sentence]] = {
    "pre": say("pre-norm"),
    "post": say("post-norm"),
    "both": say("before and after each sub-layer"),
}
NORMS: Final[Mapping[str, str]] = {"layer": "LayerNorm", "rms": "RMSNorm"}
GATED: Final[Mapping[str, str]] = {"silu": "SwiGLU", "gelu": "GEGLU", "gelu_tanh": "GEGLU"}
SIZES: Final = say(
    "Sizes are those of BERT base, GPT-2 small, T5 base, BART base and LLaMA 7B; each family has others. The rest is "
    "what this app computes when it opens such a model."
)


class KnownModelsLook(Look):
    """Whether the table is open."""

    families: bool = flag("families")


@cache
def known_models() -> Mapping[str, ModelConfig]:
    """The configs of the models, by their names."""
    # Importers take a while to import, and most visitors never open the table.
    from glassformer.extensions.huggingface.folder import FAMILIES
    from glassformer.extensions.importers.library.config_settings import Settings, always, config_of

    found = {}
    for name, one in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items():
        family, head = FAMILIES[one["family"]], bool(one.get("head"))
        said = family.said(Settings(one["config"], label=name), ("mlm_head.",) if head else ())
        # All have one table for both sides; an MLM head has a bias for each token, the others' outputs have none.
        said |= always(shared_vocab=True, tie_output=family.tied, output_bias=head)
        said |= always(pad_id=0, bos_id=1, eos_id=2, decoder_start_id=1, unk_id=None)  # as good as any other
        found[name] = config_of(said, label=name)
    return found


def made_of(config: ModelConfig) -> dict[Sentence, str]:
    """What a model is made of, by what it is about."""
    d_ff = " / ".join(f"{n:,}" for n in sorted({config.of(stack.name).d_ff for stack in anatomy(config).stacks}))
    layers = {
        say_n("{n} encoder layer", "{n} encoder layers", config.n_encoder_layers): config.n_encoder_layers,
        say_n("{n} decoder layer", "{n} decoder layers", config.n_decoder_layers): config.n_decoder_layers,
    }
    norm = NORMS.get(config.norm_kind, say("another norm"))
    function = GATED.get(config.activation, "") if config.gated else ACTIVATIONS[config.activation]
    return {
        say("Stacks"): joined(" + ", [said for said, n in layers.items() if n]),
        say("Who sees whom"): joined("; ", [SEES[kind] for kind in anatomy(config).kinds]),
        say("Positions"): POSITIONS[config.positions],
        say("Norm"): joined(", ", [norm, NORM_PLACES[config.norm]]) if config.norm_kind != "none" else say("no norms"),
        say("Feed-forward"): function or say("gated"),
        say("Biases"): say("yes") if config.biases.attention or config.biases.ffn else say("no"),
        say("Output layer"): _output(config),
        say("Heads"): heads(config),
        say("Width"): say("d_model {d_model:,}, d_ff {d_ff}", d_model=config.d_model, d_ff=d_ff),
        say("Parameters"): say("{n:,.1f} million", n=config.count_parameters() / 1e6),
    }


def _output(config: ModelConfig) -> str:
    parts = anatomy(config)
    if not parts.gives_logits:
        return say("none", about="an output layer")
    table = say("the embedding table (tied)") if config.tie_output else say("a table of its own")
    return joined(", ", [say("an MLM head"), table]) if parts.fills else table


def below(o: "OpenModel") -> None:
    """Draw the table, folded; what is open is in the address."""
    # The fields above are read where there is no Streamlit, too.
    from glassformer.shared import controls
    from glassformer.shared.i18n import frame, st

    fold = controls.fold(controls.field(o.slot, "families"), say("What BERT, GPT, T5, BART and LLaMA are made of"))
    if not fold.open:
        return
    columns = {say("This model"): made_of(o.config)} | {name: made_of(one) for name, one in known_models().items()}
    about = list(made_of(o.config))
    rows = [[made[one] for made in columns.values()] for one in about]
    with fold:
        st.table(frame(rows, columns=[*columns], index=about), alt=say("What well-known models are made of."))
        st.caption(SIZES)
