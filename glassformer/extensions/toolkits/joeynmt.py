"""Joey NMT importer: tensor names of `best.ckpt`, options of `config.yaml`, `src_vocab.txt`, `trg_vocab.txt`.

The source ends with `</s>`, the decoder begins with `<s>`; both lists begin with `<unk>`, `<pad>`, `<s>`, `</s>` unless
the config says otherwise. Version 1 is pre-norm. Version 2 configures it; without the option its two stacks differ,
which is refused.

Refused by name: recurrent encoders and decoders, a residual that is weighted (alpha), embeddings narrower than the
stream, language tags.

Source: Kreutzer et al., "Joey NMT: A Minimalist NMT Toolkit for Novices" (2019), and its code up to 2.3.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from glassformer.extensions.importers.library.config_settings import ACTIVATIONS, Fields, Known, Present, always, fixed
from glassformer.extensions.importers.library.keys import FLATTENED
from glassformer.extensions.importers.library.renaming import Becomes, in_layers
from glassformer.extensions.toolkits.toolkit import Toolkit, ToolkitFiles, ToolkitOptions, ToolkitPieces, no_lists, part
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

CONFIG = "config.yaml"
LENGTH = 5000  # rows of its table of sinusoids
SPECIAL = {"unk_id": ("unk", "<unk>"), "pad_id": ("pad", "<pad>"), "bos_id": ("bos", "<s>"), "eos_id": ("eos", "</s>")}
FUNCTIONS = {name: ACTIVATIONS[name] for name in ("relu", "gelu", "swish")}
WITHOUT_EFFECT = (  # of training, or of recurrent networks
    "dropout", "freeze", "emb_dropout", "rnn_type", "bidirectional", "attention", "embeddings.dropout",
    "embeddings.freeze", "embeddings.load_pretrained", "embeddings.vocab_size",
)  # fmt: skip


NAMES: Mapping[str, Becomes] = {
    "{src,trg}_embed.lut.weight": "?{source,target}",
    "decoder.output_layer.weight": "?output",
    "{stack}.layer_norm.{p}": "{stack}.final_norm.{p}",
    "{stack}.pe.pe": (FLATTENED, "{stack}.embedding.positions.table"),
    **in_layers("{stack}.layers", "{stack}", {
        "feed_forward.pwff_layer.{0,3}": "ffn.{up,down}_proj",
        "feed_forward.layer_norm": "ffn_residual.norm",
    }),
    **in_layers("encoder.layers", "encoder", {
        "src_src_att.{q,k,v,output}_layer": "self_attn.{q,k,v,out}_proj",
        "layer_norm": "self_attn_residual.norm",
    }),
    **in_layers("decoder.layers", "decoder", {
        "{trg_trg,src_trg}_att.{q,k,v,output}_layer": "{self,cross}_attn.{q,k,v,out}_proj",
        "{x,dec}_layer_norm": "{self,cross}_attn_residual.norm",
    }),
}  # fmt: skip


def _options(place: ToolkitFiles) -> dict[str, Any]:
    """The config's model section, flat, with the special pieces of its data section."""
    if not place.files.has(CONFIG):
        raise CheckpointError(
            "{label}: is a Joey NMT model, but {config} is not next to it; copy it there from the model's folder.",
            label=place.weights.label,
            config=CONFIG,
        )
    label = place.files.label(CONFIG)
    said = place.settings(CONFIG)
    record, flat = part(said, "model"), dict[str, Any]()
    for stack in ("encoder", "decoder"):
        own = part(record, stack)
        if not own:
            raise CheckpointError(
                "{label}: expected a section named model, with encoder and decoder inside.", label=label
            )
        flat |= {f"{stack}.{key}": value for key, value in own.items() if key != "embeddings"}
        flat |= {f"{stack}.embeddings.{key}": value for key, value in part(own, "embeddings").items()}
        del record[stack]
    special = part(said.get("data"), "special_symbols")
    return record | flat | {f"special.{key}": value for key, value in special.items()}


def _fields(options: ToolkitOptions, present: Present, pieces: ToolkitPieces | None) -> Fields:
    for stack in ("encoder", "decoder"):
        options.expect(f"{stack}.type", "transformer")
        options.expect(f"{stack}.alpha", 1.0, 1)
    options.refuse("special.lang_tags", "special.sep_token")
    width = options.same("encoder.hidden_size", "decoder.hidden_size")
    for name in ("encoder.embeddings.embedding_dim", "decoder.embeddings.embedding_dim"):
        options.expect(name, width.value)
    norm = _norm(options, present)
    made = {
        "n_encoder_layers": options.whole("encoder.num_layers", least=1, most=MAX_LAYERS),
        "n_decoder_layers": options.whole("decoder.num_layers", least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": options.whole("encoder.num_heads", least=1),
        "n_decoder_heads": options.whole("decoder.num_heads", least=1),
        "d_ff": options.whole("encoder.ff_size", least=1),
        "d_decoder_ff": options.whole("decoder.ff_size", least=1),
        "activation": _both(options, "activation", FUNCTIONS, "relu"),
        "norm": norm,
        "final_norm": Known(
            "encoder.final_norm.weight" in present, say("whether the file has tensors of a final norm"), "inferred"
        ),
        **always(norm_eps=1e-6, bias=True, append_source_eos=True, prepend_source_bos=False),
        "scale_embedding": _scale(options),
        **always(positions="sinusoidal", sinusoid_layout="interleaved", max_len=LENGTH),
        **_ids(options, pieces),
    }
    for stack in ("encoder", "decoder"):
        options.check_asked((f"{stack}.",), [f"{stack}.{name}" for name in WITHOUT_EFFECT])
    return made


def _both(options: ToolkitOptions, key: str, names: Mapping[str, str], absent: str) -> Known:
    """An option that must be equal in both stacks."""
    return options.same(f"encoder.{key}", f"decoder.{key}", absent, read=partial(options.word, names=names))


def _norm(options: ToolkitOptions, present: Present) -> Known:
    """Pre-norm or post-norm; a config of version 1 does not say, and all its models are pre-norm."""
    if any(options.has(f"{stack}.layer_norm") for stack in ("encoder", "decoder")):
        return _both(options, "layer_norm", {"pre": "pre", "post": "post"}, "post")
    if "encoder.final_norm.weight" not in present:
        raise options.refused("encoder.layer_norm", None, say("pre or post"))
    return Known("pre", options.nowhere("encoder.layer_norm"))


def _scale(options: ToolkitOptions) -> Known:
    keys = [f"{stack}.embeddings.scale" for stack in ("encoder", "decoder")]
    if options.raw("tied_embeddings") is True:  # the decoder's embeddings are the encoder's, scale and all
        options.raw(keys[1])
        return options.flag(keys[0], False)
    return options.same(keys[0], keys[1], False, read=options.flag)


def _ids(options: ToolkitOptions, pieces: ToolkitPieces | None) -> Fields:
    """The ids of special pieces, from the lists or else from the config."""
    found: dict[str, Known] = {}
    for i, (name, (short, piece)) in enumerate(SPECIAL.items()):
        said = options.raw(f"special.{short}_token", piece)
        own = options.whole(f"special.{short}_id", i)
        found[name] = own if pieces is None else fixed(pieces.id_of(str(said)))
    return found | {"decoder_start_id": found["bos_id"], "banned_ids": fixed((found["bos_id"].value,))}


def _pieces(_: ToolkitOptions, place: ToolkitFiles) -> ToolkitPieces | Sentence:
    names = ("src_vocab.txt", "trg_vocab.txt")
    if not all(map(place.files.has, names)):
        return no_lists(names)
    source, target = (tuple(place.lines(name)) for name in names)
    models = [one for one in place.names(".model", ".spm") if one.startswith(("sp.", "spm", "sentencepiece"))]
    return ToolkitPieces(source, target, (models[0], models[0]) if len(models) == 1 else None)


TOOLKIT = Toolkit(
    "Joey NMT",
    lambda weights: "src_embed.lut.weight" in weights.tensors,
    _options,
    _pieces,
    lambda *_: NAMES,
    _fields,
    ("tied_softmax",),
)
