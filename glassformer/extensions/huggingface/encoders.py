"""Importers of models with an encoder: BERT, RoBERTa, DistilBERT, T5, Marian, BART, mBART, Pegasus, M2M100 (NLLB).

The first three are encoders only, with a head that fills masks if the file has it. T5 in its first version and in 1.1
(flan and ByT5), and mT5 have a bias per distance. The other five have one set of names; they differ in the place of the
norms, in a norm after the embedding, and in positions.

Sources: Devlin et al., "BERT" (2019); Liu et al., "RoBERTa" (2019); Sanh et al., "DistilBERT" (2019); Raffel et al.
(2020); Shazeer, "GLU Variants Improve Transformer" (2020) for T5 1.1; Xue et al., "mT5" (2021); Junczys-Dowmunt et al.
(2018) for Marian; Lewis et al., "BART" (2020); Liu et al. (2020) for mBART; Zhang et al., "PEGASUS" (2020); Fan et al.
(2020) for M2M100. The names are those of transformers 5.23, and of the files that its first versions wrote.
"""

from collections.abc import Mapping
from functools import partial

from glassformer.extensions.importers.library import config_settings, renaming
from glassformer.extensions.importers.library.config_settings import Family, Fields, Known, Present, Settings, always
from glassformer.extensions.importers.library.keys import AS_IS, KeyTable, Reshape, cut_rows
from glassformer.extensions.importers.library.renaming import CLASSES, FORMULA, Becomes, in_layers, key_table
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

POSITIONS = "encoder.embedding.positions.table"
NUMBERS = say("it only numbers the positions")

NORM = "LayerNorm.{weight,bias,gamma,beta}", "norm.{weight,bias,weight,bias}"  # the first files say gamma and beta
BERT_BODY = {
    "embeddings.word_embeddings.weight": "?input",
    "embeddings.token_type_embeddings.weight": "encoder.embedding.types.table",
    f"embeddings.{NORM[0]}": f"encoder.embedding.{NORM[1]}",
    f"encoder.layer.{{n}}.{{attention.output,output}}.{NORM[0]}": (
        f"encoder.layers.{{n}}.{{self_attn,ffn}}_residual.{NORM[1]}"
    ),
    **in_layers("encoder.layer", "encoder", {
        "attention.{self.query,self.key,self.value,output.dense}": "self_attn.{q,k,v,out}_proj",
        "{intermediate,output}.dense": "ffn.{up,down}_proj",
    }),
}  # fmt: skip
BERT_HEAD = {
    "cls.predictions.transform.dense.{p}": "mlm_head.proj.{p}",
    f"cls.predictions.transform.{NORM[0]}": f"mlm_head.{NORM[1]}",
    "cls.predictions.bias": "?bias",
    "cls.predictions.decoder.{weight,bias}": "?{output,output_bias}",
}
ROBERTA_HEAD = {
    "lm_head.{dense,layer_norm}.{p}": "mlm_head.{proj,norm}.{p}",
    "lm_head.bias": "?bias",
    "lm_head.decoder.{weight,bias}": "?{output,output_bias}",
}
DISTIL_BODY = {
    "embeddings.word_embeddings.weight": "?input",
    f"embeddings.{NORM[0]}": f"encoder.embedding.{NORM[1]}",
    **in_layers("transformer.layer", "encoder", {
        "attention.{q,k,v,out}_lin": "self_attn.{q,k,v,out}_proj",
        "{sa,output}_layer_norm": "{self_attn,ffn}_residual.norm",
        "ffn.lin{1,2}": "ffn.{up,down}_proj",
    }),
}  # fmt: skip
DISTIL_HEAD = {
    "vocab_{transform,layer_norm}.{p}": "mlm_head.{proj,norm}.{p}",
    "vocab_projector.{weight,bias}": "?{output,bias}",
}
IGNORED = {"pooler.dense.{p}": CLASSES, "embeddings.{position_ids,token_type_ids}": NUMBERS}
IGNORED_HEADS = {
    "{classifier,classifier.dense,classifier.out_proj,pre_classifier,qa_outputs,cls.seq_relationship}.{p}": CLASSES
}


def _encoder_table(
    name: str, body: Mapping[str, str], head: Mapping[str, str], prefix: str, positions: Reshape = AS_IS
) -> KeyTable:
    own: Mapping[str, Becomes] = {"embeddings.position_embeddings.weight": (positions, POSITIONS)}
    names, heads = {**body, **own, **IGNORED}, {**head, **IGNORED_HEADS}
    return key_table(say("A {family} model.", family=name), names, prefixes=(prefix, ""), head=heads)


BERT = _encoder_table("BERT", BERT_BODY, BERT_HEAD, "bert.")
DISTILBERT = _encoder_table("DistilBERT", DISTIL_BODY, DISTIL_HEAD, "distilbert.")


def _first_row(settings: Settings) -> int:
    """The row of the first position: RoBERTa counts on from the padding's id."""
    return int(settings.whole("pad_token_id", 1).value) + 1


def roberta_table(settings: Settings) -> KeyTable:
    """RoBERTa's table; the first rows of its positions are not used."""
    return _encoder_table("RoBERTa", BERT_BODY, ROBERTA_HEAD, "roberta.", cut_rows(_first_row(settings)))


def _encoder(settings: Settings, present: Present, activation: Fields) -> Fields:
    """What all three have, with the activation of the head."""
    settings.expect("is_decoder", False)
    settings.expect("add_cross_attention", False)
    settings.expect("position_embedding_type", "absolute")
    settings.expect("pruned_heads", {})
    has_head = any(name.startswith("mlm_head.") for name in present)
    why = say("the file has an MLM head") if has_head else say("the file has no MLM head")
    return {
        **always(n_decoder_layers=0, norm="post", final_norm=False, embedding_norm=True, bias=True),
        **settings.vocabulary(),
        **always(positions="learned", scale_embedding=False),
        "mlm_head": Known(has_head, why),
        **(activation if has_head else {}),
    }


def bert(settings: Settings, present: Present) -> Fields:
    """BERT: token types, and the activation of the layers in its head."""
    return _bert(settings, present, {"mlm_activation": settings.word("hidden_act")})


def roberta(settings: Settings, present: Present) -> Fields:
    """RoBERTa: positions begin behind the padding's id, and the head has exact GELU whatever the layers have."""
    rows, first = settings.whole("max_position_embeddings", least=3), _first_row(settings)
    why = say("max_position_embeddings in config.json, minus the {n} rows at the start that are not used", n=first)
    return _bert(settings, present, always(mlm_activation="gelu")) | {"max_len": Known(rows.value - first, why)}


def _bert(settings: Settings, present: Present, activation: Fields) -> Fields:
    return {
        **_encoder(settings, present, activation),
        **settings.sizes({"n_encoder_layers": "num_hidden_layers", **settings.USUAL}),
        "activation": settings.word("hidden_act"),
        "norm_eps": settings.number("layer_norm_eps", 1e-12),
        "n_token_types": settings.whole("type_vocab_size", 2),
    }


def distilbert(settings: Settings, present: Present) -> Fields:
    """DistilBERT: no token types, and an epsilon that no config says."""
    settings.flag("sinusoidal_pos_embds", False)  # the table of positions is stored in both cases
    activation = settings.word("activation")
    return {
        **_encoder(settings, present, {"mlm_activation": activation}),
        **settings.sizes(
            {"n_encoder_layers": "n_layers", "d_model": "dim", "n_heads": "n_heads", "d_ff": "hidden_dim"}
        ),
        "activation": activation,
        **always(norm_eps=1e-12, n_token_types=0),
        "max_len": settings.whole("max_position_embeddings", least=1),
    }


_IDS, _ROBERTA_IDS = {"pad_token_id": 0}, {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
BERT_FAMILIES = {
    "bert": Family("BERT", BERT, bert, ids=_IDS, vocabularies=("bert",)),
    "roberta": Family("RoBERTa", roberta_table, roberta, ids=_ROBERTA_IDS, vocabularies=("roberta",)),
    "distilbert": Family(
        "DistilBERT", DISTILBERT, distilbert, ids=_IDS, vocabularies=("bert",), known=("tie_weights_",)
    ),
}


MAX_LEN = 512  # where the config does not say it: texts may be longer, as nothing has a place of its own
# feed_forward_proj -> the non-linearity; "gated-gelu" means the approximation, and without "gated-" it is as elsewhere.
GATED = {f"gated-{name}": ours for name, ours in config_settings.ACTIVATIONS.items()} | {"gated-gelu": "gelu_tanh"}
_T5_NAMES: Mapping[str, Becomes] = {
    "shared.weight": "?input",
    "{encoder,decoder}.embed_tokens.weight": "?{source,target}",
    "lm_head.weight": "?output",
    "{stack}.final_layer_norm.weight": "{stack}.final_norm.weight",
    "{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": "{stack}.order.table",
    "encoder.block.{n}.layer.{0,1}.layer_norm.weight": "encoder.layers.{n}.{self_attn,ffn}_residual.norm.weight",
    "decoder.block.{n}.layer.{0,1,2}.layer_norm.weight": (
        "decoder.layers.{n}.{self_attn,cross_attn,ffn}_residual.norm.weight"
    ),
    "{stack}.block.{n}.layer.0.SelfAttention.{q,k,v,o}.weight": "{stack}.layers.{n}.self_attn.{q,k,v,out}_proj.weight",
    "decoder.block.{n}.layer.1.EncDecAttention.{q,k,v,o}.weight": (
        "decoder.layers.{n}.cross_attn.{q,k,v,out}_proj.weight"
    ),
    "encoder.block.{n}.layer.1.DenseReluDense.{wi,wi_0,wi_1,wo}.weight": (
        "encoder.layers.{n}.ffn.{up,gate,up,down}_proj.weight"
    ),
    "decoder.block.{n}.layer.2.DenseReluDense.{wi,wi_0,wi_1,wo}.weight": (
        "decoder.layers.{n}.ffn.{up,gate,up,down}_proj.weight"
    ),
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": say(
        "cross-attention uses no positions, so the original program ignores this tensor"
    ),
}
T5 = KeyTable(say("A {family} model.", family="T5"), tuple(renaming.renamed(_T5_NAMES)))


def t5(settings: Settings, _: Present) -> Fields:
    """T5: where the output is the table of embeddings, the last vectors are scaled down."""
    said = _shared(settings)
    tied = settings.flag("tie_word_embeddings", True)
    scaled = settings.flag("scale_decoder_outputs", tied)
    scale = said["d_model"].value ** -0.5 if scaled.value else 1.0
    return {**said, "output_scale": Known(scale, scaled.evidence)}


def mt5(settings: Settings, _: Present) -> Fields:
    """mT5, whose last vectors are never scaled."""
    settings.raw("scale_decoder_outputs")
    return _shared(settings, "gated-gelu")


def _shared(settings: Settings, absent: str = "relu") -> Fields:
    settings.expect("is_decoder", False)
    layers = settings.whole("num_layers", least=1, most=MAX_LAYERS)
    gated = str(settings.raw("feed_forward_proj", absent)).startswith("gated-")
    activation = settings.word("feed_forward_proj", absent, names=GATED if gated else config_settings.ACTIVATIONS)
    # Newer versions store and read what follows from feed_forward_proj.
    settings.expect("is_gated_act", gated)
    derived = settings.raw("dense_act_fn", activation.value)
    if derived != activation.value and config_settings.ACTIVATIONS.get(str(derived)) != activation.value:
        raise settings.refused("dense_act_fn", derived, say("a value that agrees with feed_forward_proj"))
    why = say(
        "config.json gives no limit; only the distances between positions matter, so texts may be longer than this"
    )
    return {
        "n_encoder_layers": layers,
        "n_decoder_layers": settings.whole("num_decoder_layers", layers, null=layers, least=1, most=MAX_LAYERS),
        **settings.sizes({"d_model": "d_model", "d_head": "d_kv", "n_heads": "num_heads", "d_ff": "d_ff"}),
        **settings.vocabulary(),
        "max_len": settings.whole("n_positions", Known(MAX_LEN, why), least=1),
        **always(norm="pre", norm_kind="rms", final_norm=True, bias=False, positions="relative"),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-6),
        "activation": activation,
        "gated": Known(gated, activation.evidence),
        "relative_buckets": settings.whole("relative_attention_num_buckets", 32, least=1),
        "relative_distance": settings.whole("relative_attention_max_distance", 128, least=1),
        **always(score_scale=1.0, scale_embedding=False),
    }


_T5_IDS = {"pad_token_id": 0, "decoder_start_token_id": 0}
T5_FAMILIES = {
    "t5": Family("T5", T5, t5, ids=_T5_IDS, vocabularies=("t5",)),
    "mt5": Family("mT5", T5, mt5, ids=_T5_IDS, vocabularies=("t5",)),
}

PREFIXES = ("model.", "")  # the second where the model was saved without its head
BART_SIZES = {
    "n_encoder_layers": "encoder_layers", "n_decoder_layers": "decoder_layers", "d_model": "d_model",
    "n_heads": "encoder_attention_heads", "n_decoder_heads": "decoder_attention_heads", "d_ff": "encoder_ffn_dim",
    "d_decoder_ff": "decoder_ffn_dim", "max_len": "max_position_embeddings",
}  # fmt: skip
OFFSET = 2  # the first rows of their learned positions are not used
_BODY: Mapping[str, Becomes] = {
    "shared.weight": "?input",
    **renaming.FAIRSEQ,
    "{stack}.{version,embed_positions._float_tensor}": say("it is only the version number of the file format"),
    "{stack}.embed_positions.weights": FORMULA,
}
_HEAD: Mapping[str, Becomes] = {"lm_head.weight": "?output", "final_logits_bias": (renaming.ONE_ROW, "?bias")}


def _table(name: Sentence, positions: Reshape | None) -> KeyTable:
    own = {"{stack}.embed_positions.weight": (positions, "{stack}.embedding.positions.table")} if positions else {}
    return key_table(name, {**_BODY, **own}, prefixes=PREFIXES, head=_HEAD)


MARIAN = _table(say("A {family} model.", family="Marian"), AS_IS)
BART = _table(say("A model with BART's tensor names."), cut_rows(OFFSET))
PEGASUS = _table(say("A {family} model.", family="Pegasus"), AS_IS)
M2M100 = _table(say("An M2M100 or NLLB model."), None)


def _fields(settings: Settings, _: Present, *, scaled: bool = False) -> Fields:
    """What all five say alike; `scaled` is whether embeddings are, where the config does not say it."""
    settings.expect("is_decoder", False)
    settings.expect("add_cross_attention", False)
    settings.raw("num_hidden_layers")  # it repeats another
    return {
        **settings.sizes(BART_SIZES),
        **settings.vocabulary(),
        "activation": settings.word("activation_function"),
        "scale_embedding": settings.flag("scale_embedding", scaled),
        **always(norm_eps=1e-5, bias=True),
    }


def _marian(settings: Settings, present: Present) -> Fields:
    """The two sides may have vocabularies of their own."""
    shared = settings.flag("share_encoder_decoder_embeddings", True)
    if not shared.value and len({"?source", "?target"} & set(present)) == 1:  # the other has no copy of it
        raise settings.refused(
            "share_encoder_decoder_embeddings", False, say("true, because the file has only one embedding table")
        )
    own = _fields(settings, present)
    size = own["src_vocab_size"]
    return own | {"tgt_vocab_size": settings.whole("decoder_vocab_size", size, null=size, least=1)}


# Where the norms stand, and which positions there are.
_POST, _PRE = {"norm": "post", "final_norm": False}, {"norm": "pre", "final_norm": True}
_LEARNED = {"embedding_norm": True, "positions": "learned"}
_HALVES = {"positions": "sinusoidal", "sinusoid_layout": "halves"}
_FAIRSEQ = {"positions": "sinusoidal", "sinusoid_layout": "fairseq"}
_BART_IDS = {"pad_token_id": 1, "bos_token_id": 0}


def _starting(i: int) -> dict[str, int | None]:
    """The ids of a family whose outputs begin with padding."""
    return {"pad_token_id": i, "decoder_start_token_id": i}


BART_FAMILIES = {
    "marian": Family("Marian", MARIAN, _marian, _HALVES | _POST, _starting(58100), ("marian",)),
    "bart": Family("BART", BART, _fields, _POST | _LEARNED, _BART_IDS, ("roberta",)),
    "mbart": Family("mBART", BART, _fields, _PRE | _LEARNED, _BART_IDS, ("mbart", "mbart50")),
    "pegasus": Family("Pegasus", PEGASUS, _fields, _PRE | _HALVES, _starting(0), ("pegasus",)),
    "m2m_100": Family(
        "M2M100, NLLB", M2M100, partial(_fields, scaled=True), _PRE | _FAIRSEQ, _BART_IDS, ("m2m100", "nllb")
    ),
}
