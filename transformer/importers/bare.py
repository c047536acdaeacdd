"""What the smallest models of articles leave out, and what is to be made of that.

One article shows a block of an encoder by itself, for its readers to build upon; another one an encoder of one layer
with one head, and neither norms nor a residual connection. Nothing is made up: what stands in for a part that is not
there changes nothing, and the report says so.
"""

from dataclasses import replace

from transformer.errors import CheckpointError, shown
from transformer.importers.keys import Match, Taken
from transformer.importers.report import Choice, Field
from transformer.importers.reshapes import ONE_MAP, UNIT_VECTORS, WITH_NO_OUTPUT_MAP
from transformer.importers.tutorials import POSITION_OF, TABLES
from transformer.importers.weights import Weights
from words import Sentence, say

_FIRST = "encoder.layers.0.ffn.up_proj.weight"


def completed(found: Match) -> Match:
    """The match with what a bare model leaves out, where that changes nothing: a map of heads put together, a table.

    The smallest models of articles have one head and take its output as it is. A block by itself has no embeddings;
    its piece i then stands for the unit vector of dimension i, so that what the block does with it can be seen.
    """
    there = found.sources
    added = []
    for name, one in there.items():
        output = name.replace("v_proj.weight", "out_proj.weight")
        if output != name and output not in there and len(one.targets) == 1:
            added.append(Taken(one.source, (output,), WITH_NO_OUTPUT_MAP))
    tables = {"src_table", "tgt_table", *POSITION_OF.values()}
    if _FIRST in there and not tables & there.keys() and not found.n_layers("decoder") and not found.left_over:
        added.append(Taken(there[_FIRST].source, ("src_table",), UNIT_VECTORS))
    return replace(found, taken=(*found.taken, *added))


def bare_fields(found: Match) -> dict[str, Field]:
    """What a model says by what it does not have."""
    fields = list[Field]()
    how = {one.reshape for one in found.taken}
    if WITH_NO_OUTPUT_MAP in how:
        why = say("No map puts several heads together, so there is one.")
        fields.append(Field("n_heads", "inferred", 1, why))
    if ONE_MAP in how:
        why = say("The feed-forward network is one map, with nothing between it and another.")
        fields.append(Field("activation", "inferred", "none", why))
    if not found.left_over and not any(name.endswith("norm.weight") for name in found.sources):
        why = say("There are no norms.")
        fields += [Field("norm_kind", "inferred", "none", why), Field("norm", "inferred", "post", why)]
        fields.append(Field("norm_eps", "inferred", 1e-5, why))
        why = say("Nothing in the file says whether what a sub-layer computes is added to what it read.")
        fields.append(Field("residual", "asked", None, why, (Choice(False), Choice(True))))
    if UNIT_VECTORS in how:
        why = say("The file has no embeddings, so unit vectors are what the layers read.")
        fields += [Field("scale_embedding", "inferred", False, why), Field("positions", "inferred", "none", why)]
    return {one.name: one for one in fields}


def notes_of(found: Match, weights: Weights) -> tuple[Sentence, ...]:
    """What was taken for granted of layers whose names do not say which stack they are of.

    Refuses them where there is an output behind them, so that they may well be a decoder's.
    """
    notes = list[Sentence]()
    if any(one.reshape is UNIT_VECTORS for one in found.taken):
        notes.append(say("The file has no embeddings: piece i stands for the unit vector of dimension i."))
    names = [one.source for one in found.taken if one.targets[0].startswith("encoder.layers.")]
    if not names or any("enc" in name.lower() for name in names):
        return tuple(notes)
    outputs = {f"{found.prefix}{name}.weight" for name in TABLES["output_table"]}
    output = next((name for name in found.left_over if name in outputs), None)
    if output is not None:
        raise CheckpointError(
            "{label}: {name} does not say whether its layer is an encoder's or a decoder's, and the output {output} "
            "stands behind the layers; save the weights once more with the layers called encoder.layers or "
            "decoder.layers.",
            label=weights.label,
            name=shown(names[0]),
            output=shown(output),
        )
    notes.append(
        say(
            "The names do not say whether the layers are an encoder's or a decoder's; they were taken for an "
            "encoder's, in which every token sees all others."
        )
    )
    return tuple(notes)
