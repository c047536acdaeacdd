"""Marian importer: tensors and options of `model.npz`, vocabularies as YAML, text or SentencePiece.

Matrices multiply from the right, so they are transposed. The decoder begins with a vector of zeros: a row of zeros is
added after the last piece, as padding, which is never written (its bias is far below all others).

Refused by name: types other than `transformer` (s2s, amun, nematus, multi-transformer, language models, BERT),
decoders of average attention or an RNN (SSRU), sub-layers with a highway or without a sum, norms before sub-layers,
RMS norms, feed-forward networks of another depth or another width in the decoder, layers that are shared, no
projection, pooling, factored vocabularies, other inputs than text, right to left, universal tables, an output without
bias, and integers instead of floats.

Source: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018), and its code up to 1.12.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from glassformer.extensions.importers.library.config_settings import Fields, Known, Present, always, fixed, inferred
from glassformer.extensions.importers.library.keys import FOR_BOTH, TRANSPOSED, Reshape
from glassformer.extensions.importers.library.renaming import ONE_ROW, Becomes
from glassformer.extensions.tokenizers.tokenizer_families import sentencepiece
from glassformer.extensions.toolkits.toolkit import Toolkit, ToolkitFiles, ToolkitOptions, ToolkitPieces, settings
from transformer.checkpoint.tokenizer_files import MAX_TOKENIZER
from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

CONFIG = "special:model.yml"
END, UNKNOWN = "</s>", "<unk>"  # ids 0 and 1 of every vocabulary
FAR_BELOW = -10_000.0  # a logit whose probability is 0 in every arithmetic
LENGTH = 1000  # of a text: what Marian cuts at where nothing else is said
FUNCTIONS = {"relu": "relu", "swish": "silu", "gelu": "quick_gelu"}
REFUSED = (
    "transformer-tied-layers", "transformer-no-projection", "transformer-pool", "transformer-no-bias",
    "transformer-no-affine", "right-left", "ulr", "input-types", "lemma-dim-emb", "lemma-dependency",
    "output-omit-bias", "factors-dim-emb", "char-stride", "bert-train-type-embeddings-used", "output-approx-knn",
)  # fmt: skip
# Of recurrent networks, other decoders, or training.
WITHOUT_EFFECT = (
    "bert-train-type-embeddings", "bert-type-vocab-size", "char-conv-filters-num", "char-conv-filters-widths",
    "char-highway", "dec-cell", "dec-cell-base-depth", "dec-cell-high-depth", "dim-rnn", "enc-cell", "enc-cell-depth",
    "enc-type", "factors-combine", "layer-normalization", "skip", "special-vocab", "tied-embeddings",
    "tied-embeddings-all", "tied-embeddings-src", "transformer-aan-activation", "transformer-aan-depth",
    "transformer-aan-nogate", "transformer-dim-aan", "transformer-guided-alignment-layer",
    "transformer-depth-scaling", "transformer-rnn-projection", "transformer-train-position-embeddings",
    "transformer-train-positions", "ulr-dim-emb", "ulr-trainable-transformation", "version", "max-length",
    "unit-norm", "dim-pos", "original-type", "dropout-rnn", "dropout-src", "dropout-trg",
)  # fmt: skip
TABLES = {"Wemb": "?input", "encoder_Wemb": "?source", "decoder_Wemb": "?target"}
SPLITTING = ("source.spm", "target.spm")
SIDES = (("src", "source"), ("trg", "tgt", "target"))


def _with_zeros(
    tensor: torch.Tensor, _: Any, *, rows: int, value: float = 0.0, turned: bool = False
) -> tuple[torch.Tensor]:
    """Append rows to a table or a bias."""
    table = tensor.t() if turned else tensor
    table = table.flatten() if value else table
    made = torch.full((rows, *table.shape[1:]), value, device=table.device)
    if len(table) > rows:
        raise ValueError("rows")
    if not made.is_meta:  # where torch.cat would import torch's compiler, which takes seconds
        made[: len(table)] = table
    return (made,)


NAMES: Mapping[str, Becomes] = {
    "{stack}_l{m}_{self,context}_W{q,k,v,o}": (
        TRANSPOSED, "{stack}.layers.{n}.{self,cross}_attn.{q,k,v,out}_proj.weight",
    ),
    "{stack}_l{m}_{self,context}_b{q,k,v,o}": (ONE_ROW, "{stack}.layers.{n}.{self,cross}_attn.{q,k,v,out}_proj.bias"),
    "{stack}_l{m}_ffn_W{1,2}": (TRANSPOSED, "{stack}.layers.{n}.ffn.{up,down}_proj.weight"),
    "{stack}_l{m}_ffn_b{1,2}": (ONE_ROW, "{stack}.layers.{n}.ffn.{up,down}_proj.bias"),
    "{stack}_l{m}_{self_Wo,context_Wo,ffn_ffn}_ln_{scale,bias}": (
        ONE_ROW, "{stack}.layers.{n}.{self_attn,cross_attn,ffn}_residual.norm.{weight,bias}",
    ),
    "{stack}_emb_ln_{scale,bias}_pre": (ONE_ROW, "{stack}.embedding.norm.{weight,bias}"),
    "{stack}_top_ln_{scale,bias}": (ONE_ROW, "{stack}.final_norm.{weight,bias}"),
    "Wpos": (FOR_BOTH, "{encoder,decoder}.embedding.positions.table"),
}  # fmt: skip


def _names(options: ToolkitOptions, place: ToolkitFiles) -> Mapping[str, Becomes]:
    options.expect("type", "transformer")
    options.expect("transformer-decoder-autoreg", "self-attention")
    options.refuse(*REFUSED)
    sizes, tensors = options.raw("dim-vocabs"), place.weights.tensors
    shapes = [tensors[name].shape for name in TABLES if name in tensors]
    rows = 1 + max((shape[0] for shape in shapes if len(shape) == 2), default=0)  # of both tables
    if not isinstance(sizes, list) or len(sizes) != 2 or {int} != set(map(type, sizes)) or max(sizes) != rows - 1:
        raise options.refused("dim-vocabs", sizes, say("two numbers, with {n:,} as the larger one", n=rows - 1))
    table = Reshape(partial(_with_zeros, rows=rows), say("rows of zeros added at the end"), exact=False)
    turned = Reshape(
        partial(_with_zeros, rows=rows, turned=True),
        say("transposed, then rows of zeros added at the end"),
        exact=False,
    )
    bias = Reshape(
        partial(_with_zeros, rows=rows, value=FAR_BELOW),
        say("flattened into one row, with {value:,.0f} in the added entries", value=FAR_BELOW),
        exact=False,
    )
    return {
        **NAMES,
        **{name: (table, role) for name, role in TABLES.items()},
        "decoder_ff_logit_out_Wt": (table, "?output"),
        "decoder_ff_logit_out_W": (turned, "?output"),
        "decoder_ff_logit_out_b": (bias, "?bias"),
    }


def _options(place: ToolkitFiles) -> dict[str, Any]:
    label = place.weights.label
    if CONFIG not in place.weights.evidence:
        raise ClauseError(
            "has no {array}, which describes how the model computes; Marian files have contained it since version 1.0",
            array=CONFIG,
        )
    return settings(place.weights.evidence[CONFIG], label=f"{label}: {CONFIG}")


def _fields(options: ToolkitOptions, present: Present, pieces: ToolkitPieces | None) -> Fields:
    width = options.whole("dim-emb", least=2)
    if width.value % 2:
        raise options.refused("dim-emb", width.value, say("an even number"))
    options.expect("transformer-ffn-depth", 2)
    options.expect("transformer-decoder-ffn-depth", 0, 2)
    options.expect("transformer-decoder-dim-ffn", 0, options.raw("transformer-dim-ffn", 2048))
    learned = "encoder.embedding.positions.table" in present
    positions = say("the file has a table of positions") if learned else say("the file has no table of positions")
    _check_norms(options)
    made = {
        "n_encoder_layers": options.whole("enc-depth", least=1, most=MAX_LAYERS),
        "n_decoder_layers": options.whole("dec-depth", least=1, most=MAX_LAYERS),
        "d_model": width,
        "n_heads": options.whole("transformer-heads", 8, least=1),
        "d_ff": options.whole("transformer-dim-ffn", 2048, least=1),
        "activation": options.word("transformer-ffn-activation", "swish", names=FUNCTIONS),
        "norm": fixed("post"),
        "final_norm": _operations(options, "transformer-postprocess-top"),
        **always(norm_eps=1e-6, bias=True),
        "embedding_norm": _operations(options, "transformer-postprocess-emb"),
        "scale_embedding": inferred(not learned, positions),
        "positions": inferred("learned" if learned else "sinusoidal", positions),
        "sinusoid_layout": fixed("interleaved" if learned else "tensor2tensor"),
        **always(max_len=LENGTH, append_source_eos=True, prepend_source_bos=False),
        **_ids(options, pieces),
    }
    options.check_asked(("",), WITHOUT_EFFECT)
    return made


def _ids(options: ToolkitOptions, pieces: ToolkitPieces | None) -> Fields:
    """`</s>` is 0, unknown is 1 and never written; the row of zeros is after all pieces."""
    start = max(options.raw("dim-vocabs"))
    unknown = None if pieces is None or UNKNOWN not in pieces.source[:2] or UNKNOWN not in pieces.target[:2] else 1
    banned = () if unknown is None else (unknown,)
    return always(pad_id=start, decoder_start_id=start, bos_id=None, eos_id=0, unk_id=unknown, banned_ids=banned)


def _check_norms(options: ToolkitOptions) -> None:
    """Refuse all but post-norm; dropout is ignored."""
    if str(options.raw("transformer-preprocess", "") or "").strip("d"):
        raise ClauseError(
            "transformer-preprocess: found {found}. In pre-norm models, some versions of Marian normalise keys and "
            "values and others do not, but no version does so while generating. It is therefore unclear how this "
            "model computes",
            found=shown(options.raw("transformer-preprocess")),
        )
    post = options.raw("transformer-postprocess", "dan")
    if str(post).replace("d", "") != "an":
        raise options.refused("transformer-postprocess", post, "dan")


def _operations(options: ToolkitOptions, key: str) -> Known:
    """Whether there is a norm at this place, and nothing else."""
    found = str(options.raw(key, "") or "").replace("d", "")
    if found not in ("", "n"):
        raise options.refused(key, found, say("“n” or an empty value"))
    return Known(found == "n", options.where(key) if options.has(key) else options.nowhere(key))


def _pieces(options: ToolkitOptions, place: ToolkitFiles) -> ToolkitPieces | Sentence:
    """The vocabularies that `model.npz.decoder.yml` names, or else those next to the model with usual names."""
    names = _named(place) or _found(place)
    if not names:
        return say(
            "The model's vocabularies, for example vocab.src.yml and vocab.trg.yml, are not in the folder of the "
            "model's file."
        )
    read = {name: _vocabulary(place, name) for name in dict.fromkeys(names)}
    for name, pieces in read.items():
        if pieces[:1] != (END,):
            raise CheckpointError(
                "{label}: the token with id 0 must be {end}, as in every Marian vocabulary; factored vocabularies "
                "cannot be read.",
                label=place.files.label(name),
                end=END,
            )
    spm = [name for name in names if name.endswith(".spm")]
    models = names if len(spm) == 2 else SPLITTING if not spm and all(map(place.files.has, SPLITTING)) else None
    return ToolkitPieces(read[names[0]], read[names[1]], models)


def _named(place: ToolkitFiles) -> tuple[str, str] | None:
    own = f"{place.name.removesuffix('.safetensors')}.decoder.yml"
    there = place.names("decoder.yml")
    for name in (own, *(there if len(there) == 1 else ())):
        if place.files.has(name):
            said = place.settings(name).get("vocabs")
            names = [str(one).rsplit("/", 1)[-1] for one in said] if isinstance(said, list) else []
            if len(names) == 2 and all(map(place.files.has, names)):
                return names[0], names[1]
    return None


def _found(place: ToolkitFiles) -> tuple[str, str] | None:
    called = [one for one in place.names(".yml", ".yaml", ".spm", ".txt") if "vocab" in one.lower()]
    if len(called) == 1:
        return called[0], called[0]
    sides = [[one for one in called if any(mark in one.lower() for mark in marks)] for marks in SIDES]
    return (sides[0][0], sides[1][0]) if [len(side) for side in sides] == [1, 1] else None


def _vocabulary(place: ToolkitFiles, name: str) -> tuple[str, ...]:
    if name.endswith(".txt"):
        return tuple(place.lines(name))
    if not name.endswith(".spm"):
        return place.by_ids(name)
    with within(place.weights.label):
        return sentencepiece({name: place.files.read(name, limit=MAX_TOKENIZER)}, name).pieces


TOOLKIT = Toolkit(
    "Marian",
    lambda weights: CONFIG in weights.evidence or "decoder_ff_logit_out_b" in weights.tensors,
    _options,
    _pieces,
    _names,
    _fields,
    ("tied-embeddings", "tied-embeddings-all"),
)
