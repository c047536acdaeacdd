"""Marian, BART, mBART, Pegasus and M2M100 (with NLLB): five encoder-decoders with one set of names.

They differ in the place of the norms, in a norm after the embedding, and in positions.

Sources: Junczys-Dowmunt et al. (2018) for Marian; Lewis et al., "BART" (2020); Liu et al. (2020) for mBART; Zhang et
al., "PEGASUS" (2020); Fan et al. (2020) for M2M100; the names are those of transformers 5.23.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from glassformer.extensions.importers.library.config_settings import Family, Fields, Present, Settings, always
from glassformer.extensions.importers.library.keys import AS_IS, KeyTable, Reshape, Rule, cut_rows
from glassformer.extensions.importers.library.renaming import (
    BIAS,
    FORMULA,
    INPUT,
    ONE_ROW,
    OUTPUT,
    SOURCE,
    TARGET,
    names_of,
    renamed,
    unused,
)
from transformer.i18n import Sentence, say
from transformer.model.config import MAX_LAYERS

PREFIXES = ("model.", "")  # the second where the model was saved without its head
OFFSET = 2  # the first rows of their learned positions are not used


def _rules(positions: Reshape | None) -> Iterator[Rule]:
    for stack, role in (("encoder", SOURCE), ("decoder", TARGET)):
        yield from renamed(names_of(stack, role), prefixes=PREFIXES)
        if positions:
            table = {f"{stack}.embed_positions.weight": f"{stack}.embedding.positions.table"}
            yield from renamed(table, prefixes=PREFIXES, reshape=positions)
    yield from renamed({"shared.weight": INPUT}, prefixes=PREFIXES)
    yield Rule.of("lm_head.weight", OUTPUT)
    yield Rule.of("final_logits_bias", BIAS, reshape=ONE_ROW)


_OLD = [
    f"{stack}.{name}" for stack, name in product(("encoder", "decoder"), ("version", "embed_positions._float_tensor"))
]
_FORMULAS = [f"{stack}.embed_positions.weights" for stack in ("encoder", "decoder")]
_UNUSED = (
    *unused(say("it is only the version number of the file format"), *_OLD, prefixes=PREFIXES),
    *unused(FORMULA, *_FORMULAS, prefixes=PREFIXES),
)


def _table(name: Sentence, positions: Reshape | None) -> KeyTable:
    return KeyTable(name, tuple(_rules(positions)), _UNUSED)


MARIAN = _table(say("A Marian model."), AS_IS)
BART = _table(say("A model with BART's tensor names."), cut_rows(OFFSET))
PEGASUS = _table(say("A Pegasus model."), AS_IS)
M2M100 = _table(say("An M2M100 or NLLB model."), None)


def _fields(settings: Settings, _: Present, *, scaled: bool = False) -> Fields:
    """What all five say alike; `scaled` is whether embeddings are, where the config does not say it."""
    settings.expect("is_decoder", False)
    settings.expect("add_cross_attention", False)
    settings.raw("num_hidden_layers")  # it repeats another
    return {
        "n_encoder_layers": settings.whole("encoder_layers", least=1, most=MAX_LAYERS),
        "n_decoder_layers": settings.whole("decoder_layers", least=1, most=MAX_LAYERS),
        "d_model": settings.whole("d_model", least=1),
        "n_heads": settings.whole("encoder_attention_heads", least=1),
        "n_decoder_heads": settings.whole("decoder_attention_heads", least=1),
        "d_ff": settings.whole("encoder_ffn_dim", least=1),
        "d_decoder_ff": settings.whole("decoder_ffn_dim", least=1),
        **settings.vocabulary(),
        "activation": settings.word("activation_function"),
        "scale_embedding": settings.flag("scale_embedding", scaled),
        "max_len": settings.whole("max_position_embeddings", least=1),
        **always(norm_eps=1e-5, bias=True),
    }


def _marian(settings: Settings, present: Present) -> Fields:
    """The two sides may have vocabularies of their own."""
    shared = settings.flag("share_encoder_decoder_embeddings", True)
    if not shared.value and len({SOURCE, TARGET} & set(present)) == 1:  # the other is no copy of it
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
_IDS = {"pad_token_id": 1, "bos_token_id": 0}


def _starting(i: int) -> dict[str, int | None]:
    """The ids of a family whose outputs begin with padding."""
    return {"pad_token_id": i, "decoder_start_token_id": i}


FAMILIES = {
    "marian": Family("Marian", MARIAN, _marian, _HALVES | _POST, _starting(58100), ("marian",)),
    "bart": Family("BART", BART, _fields, _POST | _LEARNED, _IDS, ("roberta",)),
    "mbart": Family("mBART", BART, _fields, _PRE | _LEARNED, _IDS, ("mbart", "mbart50")),
    "pegasus": Family("Pegasus", PEGASUS, _fields, _PRE | _HALVES, _starting(0), ("pegasus",)),
    "m2m_100": Family("M2M100, NLLB", M2M100, partial(_fields, scaled=True), _PRE | _FAIRSEQ, _IDS, ("m2m100", "nllb")),
}
