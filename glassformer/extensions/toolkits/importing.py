"""Import of a toolkit's model (fairseq, OpenNMT-py, Joey NMT, Marian): tensors, options, vocabularies.

Options and tensors without an implementation here are refused by name. There are no questions.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from glassformer.extensions.importers.library import import_inputs, keys
from glassformer.extensions.importers.library.config_settings import Fields, Present, inferred
from glassformer.extensions.importers.library.import_inputs import ImportRequest, Tokenizers
from glassformer.extensions.importers.library.kept_answers import not_asked
from glassformer.extensions.importers.library.keys import KeyTable
from glassformer.extensions.importers.library.readers import Reader
from glassformer.extensions.importers.library.renaming import imported, renamed, settled
from glassformer.extensions.importers.library.report import Imported
from glassformer.extensions.tokenizers import options as text_options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from glassformer.extensions.toolkits import fairseq, joeynmt, marian, opennmt
from glassformer.extensions.toolkits.toolkit import Toolkit, ToolkitFiles, ToolkitOptions, ToolkitPieces
from glassformer.extensions.weight_files.weights import Weights
from transformer.checkpoint.tokenizer_files import MAX_TOKENIZER
from transformer.errors import ClauseError, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say

TOOLKITS = (fairseq.TOOLKIT, opennmt.TOOLKIT, joeynmt.TOOLKIT, marian.TOOLKIT)
IDS = ("pad_id", "unk_id", "bos_id", "eos_id", "decoder_start_id")


class ToolkitReader(Reader):
    """Files that a toolkit saved, with what lies beside them."""

    def import_weights(self, weights: Weights, asked: ImportRequest) -> Imported | None:
        """Read what one of the toolkits saved."""
        toolkit, source = next((one for one in TOOLKITS if one.recognises(weights)), None), asked.source
        if toolkit is None or source is None:
            return None
        folder, name = (source, "") if source.is_dir() else (source.parent, source.name)
        place = ToolkitFiles(weights, folder, name, FolderFiles(folder, inside=asked.inside))
        return import_toolkit(toolkit, place, asked)


READER = ToolkitReader()


def import_toolkit(toolkit: Toolkit, place: ToolkitFiles, asked: ImportRequest) -> Imported:
    """Import what a toolkit saved.

    It takes no answers and no tokenizer, because a toolkit has its own list of pieces. A CheckpointError names the
    option or tensor that is damaged, missing, left over, or not supported.
    """
    weights = place.weights
    with within(weights.label):
        _check_alone(toolkit, asked)
        options = ToolkitOptions(toolkit.options(place), label=weights.label)
        lists = toolkit.pieces(options, place)
        pieces = lists if isinstance(lists, ToolkitPieces) else None
        rules = tuple(renamed(toolkit.names(options, place)))
        table = KeyTable(say("A Transformer of {toolkit}.", toolkit=toolkit.name), rules)

        def fields(present: Present) -> Fields:
            said = toolkit.fields(options, present, pieces)
            if "?output" not in present and not any(options.raw(name) is True for name in toolkit.tied):
                raise ClauseError(
                    "has no output layer, and its options do not specify that the embedding table serves as one; save "
                    "the whole model"
                )
            return said

        found, said = settled(table, weights, options, fields, tied=True)
        shapes = keys.shapes(found, weights, {"n_heads": said["n_heads"].value})
        source = shapes.get("src_table", ())
        tables = {"src_vocab_size": source, "tgt_vocab_size": shapes.get("tgt_table", source)}
        if not all(len(shape) == 2 for shape in tables.values()):
            raise ClauseError("has an embedding table that is not a matrix; save the model again")
        why = say("the number of rows of the embedding table")
        said |= {name: inferred(shape[0], why) for name, shape in tables.items()}
        special = [said[name].value for name in IDS if said[name].value is not None]
        made = _tokenizers(lists, said, place, special)
        return imported(found, weights, said, made.stored, label=weights.label, kind=toolkit.name, notes=made.notes)


def _check_alone(toolkit: Toolkit, asked: ImportRequest) -> None:
    for name, value in asked.answers.items():
        raise ClauseError(not_asked(name, value))
    if asked.given.has_tokenizer:
        raise ClauseError(
            "the ids of a {toolkit} model come from its own list of tokens, inside the file or next to it; remove "
            "the tokenizer",
            toolkit=toolkit.name,
        )


def _tokenizers(
    lists: ToolkitPieces | Sentence, said: Fields, place: ToolkitFiles, special: Sequence[int]
) -> Tokenizers:
    """The vocabulary: SentencePiece if its file exists, else pieces between spaces; or none."""
    sizes = said["src_vocab_size"].value, said["tgt_vocab_size"].value
    if not isinstance(lists, ToolkitPieces):
        made = import_inputs.without(sizes, special)
        return replace(made, notes=(lists, *made.notes))
    _check_lists(lists, sizes, shared=said["shared_vocab"].value)
    content = {"vocab.json": _listed(lists.source)}
    if lists.source != lists.target or sizes[0] != sizes[1]:
        content["target_vocab.json"] = _listed(lists.target)
    note = say("The files do not specify how a text is split into tokens, so type the tokens with spaces between them.")
    if lists.models:
        names = zip(("source.spm", "target.spm"), lists.models, strict=True)
        content |= {own: place.files.read(name, limit=MAX_TOKENIZER) for own, name in names}
    options = text_options.Options(
        size=sizes[0], target_size=None if sizes[0] == sizes[1] else sizes[1], special_ids=tuple(sorted({*special})),
        end=said["append_source_eos"].value if lists.models else None,  # a list of OpenNMT-py may have no end mark
    )  # fmt: skip
    stored = Vocabularies("marian" if lists.models else "list", options, content)
    return Tokenizers(stored, *stored.open(), notes=() if lists.models else (note,))


def _check_lists(lists: ToolkitPieces, sizes: tuple[int, int], *, shared: bool) -> None:
    for names, rows in zip((lists.source, lists.target), sizes, strict=True):
        if len(names) > rows:
            raise ClauseError(
                "a list of tokens has {n:,} tokens, but its embedding table has {rows:,} rows; put the lists that "
                "the model was trained with next to the model's file",
                n=len(names),
                rows=rows,
            )
    if shared and lists.source != lists.target:
        raise ClauseError(
            "has one embedding table for both sides, but two different lists of tokens; put the lists that the model"
            " was trained with next to the model's file"
        )


def _listed(names: Sequence[str]) -> bytes:
    return json.dumps({piece: i for i, piece in enumerate(names)}, ensure_ascii=False).encode()
