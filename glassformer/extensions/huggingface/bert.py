"""BERT, RoBERTa and DistilBERT: encoder-only models, with a head that fills masks if the file has it.

Sources: Devlin et al., "BERT" (2019); Liu et al., "RoBERTa" (2019); Sanh et al., "DistilBERT" (2019); the names are
those of transformers 5.23, and of the files that its first versions wrote.
"""

from collections.abc import Mapping

from glassformer.extensions.importers.library.config_settings import Family, Fields, Known, Present, Settings, always
from glassformer.extensions.importers.library.keys import AS_IS, KeyTable, Reshape, cut_rows
from glassformer.extensions.importers.library.renaming import CLASSES, in_layers, renamed
from transformer.i18n import say

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


def _table(
    name: str, body: Mapping[str, str], head: Mapping[str, str], prefix: str, positions: Reshape = AS_IS
) -> KeyTable:
    own = {"embeddings.position_embeddings.weight": (positions, POSITIONS)}
    rules = renamed({**body, **own, **IGNORED}, prefixes=(prefix, ""))
    return KeyTable(say("A {family} model.", family=name), (*rules, *renamed({**head, **IGNORED_HEADS})))


BERT = _table("BERT", BERT_BODY, BERT_HEAD, "bert.")
DISTILBERT = _table("DistilBERT", DISTIL_BODY, DISTIL_HEAD, "distilbert.")


def _first_row(settings: Settings) -> int:
    """The row of the first position: RoBERTa counts on from the padding's id."""
    return int(settings.whole("pad_token_id", 1).value) + 1


def roberta_table(settings: Settings) -> KeyTable:
    """RoBERTa's table; the first rows of its positions are not used."""
    return _table("RoBERTa", BERT_BODY, ROBERTA_HEAD, "roberta.", cut_rows(_first_row(settings)))


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
FAMILIES = {
    "bert": Family("BERT", BERT, bert, ids=_IDS, vocabularies=("bert",)),
    "roberta": Family("RoBERTa", roberta_table, roberta, ids=_ROBERTA_IDS, vocabularies=("roberta",)),
    "distilbert": Family(
        "DistilBERT", DISTILBERT, distilbert, ids=_IDS, vocabularies=("bert",), known=("tie_weights_",)
    ),
}
