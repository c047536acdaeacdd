"""Import of a transformers folder: its family, config keys, weights and tokenizer; the importers' reader.

    imported = import_folder(Path("downloads/opus-mt-en-fr"))
    print(imported.report)
    save(imported.parts, Path("checkpoints/en-fr"))

No code of the folder is run, and transformers is not needed. Unsupported arithmetic is refused, with the key or tensor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.huggingface import decoders, encoders, folder_texts
from glassformer.extensions.huggingface.folder_texts import GENERATION, LANGUAGES
from glassformer.extensions.importers.library.config_settings import MOST_CONFIG, Family, Fields, Known, Settings, fixed
from glassformer.extensions.importers.library.import_inputs import ImportRequest, Tokenizers
from glassformer.extensions.importers.library.kept_answers import NO_ANSWERS, YOU, check_names, not_asked
from glassformer.extensions.importers.library.keys import KeyTable, Match
from glassformer.extensions.importers.library.readers import Reader
from glassformer.extensions.importers.library.renaming import imported, settled
from glassformer.extensions.importers.library.report import Field, Imported, ask
from glassformer.extensions.weight_files.weights import Weights, open_weights
from transformer.checkpoint.load import CONFIG
from transformer.errors import CheckpointError, shown
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence, say

# About the file, the program that wrote it, and how it is run.
BOOKKEEPING = frozenset({
    "architectures", "attn_implementation", "chunk_size_feed_forward", "dtype", "gradient_checkpointing",
    "is_encoder_decoder", "model_type", "output_attentions", "output_hidden_states", "output_past", "return_dict",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "use_bfloat16",
    "use_cache", "prefix", "cross_attention_hidden_size", "tie_encoder_decoder", "is_llama_config", "save_step",
    "cls_token_id", "mask_token_id", "unk_token_id", "max_sequence_length",
})  # fmt: skip

# Training, and its first values.
TRAINING = frozenset({
    "activation_dropout", "activation_dropout_prob", "attention_dropout", "attention_probs_dropout_prob",
    "attn_pdrop", "classif_dropout", "classifier_dropout", "decoder_layerdrop", "dropout", "dropout_rate",
    "embd_pdrop",
    "encoder_layerdrop", "hidden_dropout", "hidden_dropout_prob", "init_std", "initializer_factor",
    "initializer_range", "layerdrop", "pretraining_tp", "qa_dropout", "replacing_rate", "resid_pdrop",
    "seq_classif_dropout", "student_decoder_layers", "student_encoder_layers",
})  # fmt: skip

# Heads for other tasks.
TASKS = frozenset({
    "directionality", "finetuning_task", "id2label", "label2id", "num_labels", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "problem_type",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params",
})  # fmt: skip

# Switches that no code reads any more.
DEAD = frozenset({
    "add_bias_logits", "add_final_layer_norm", "extra_pos_embeddings", "n_ctx", "normalize_before",
    "normalize_embedding", "reorder_and_upcast_attn", "static_position_embeddings",
})  # fmt: skip

# Keys that load code from the folder; transformers runs none by default, this program never does.
ASKS_FOR_CODE = frozenset({"auto_map", "custom_pipelines", "trust_remote_code"})

WITHOUT_EFFECT = ASKS_FOR_CODE | BOOKKEEPING | TRAINING | TASKS | DEAD


FAMILIES: Mapping[str, Family] = (
    encoders.BART_FAMILIES | encoders.T5_FAMILIES | decoders.FAMILIES | encoders.BERT_FAMILIES
)


ADAPTER = "adapter_config.json"
SPECIAL_IDS = ("pad_id", "bos_id", "eos_id", "decoder_start_id")


def import_folder(
    folder: Path | str, *, answers: Mapping[str, Any] = NO_ANSWERS, inside: Path | None = None
) -> Imported:
    """Read a folder that has a config.json, the weights and as a rule a tokenizer.

    The answers are by field name, to an earlier report's questions; `inside` is the real path of a folder that links
    may not leave. Damaged, missing or unused parts and unsupported arithmetic are refused, with the key or tensor.
    """
    files = FolderFiles(Path(folder), inside=inside)
    record = _record(files, CONFIG)
    family = _family(files, record)
    settings = Settings(record, label=files.label(CONFIG))
    with open_weights(Path(folder), inside=inside) as weights:
        return _Import(files, record, family, settings, weights, answers).done()


def family_of(files: FolderFiles) -> Family:
    """The family that a folder's config.json names; a `CheckpointError` if it does not open here."""
    return _family(files, _record(files, CONFIG))


def _record(files: FolderFiles, name: str) -> dict[str, Any]:
    if name == CONFIG and not files.has(CONFIG) and files.has(ADAPTER):
        raise CheckpointError(
            "{folder}: contains only an adapter, not the model that it belongs to; merge the two and save the "
            "whole model.",
            folder=files.name,
        )
    record = files.json(name, limit=MOST_CONFIG)
    if not isinstance(record, dict):
        raise CheckpointError(
            "{file}: expected a JSON object, found {found}.", file=files.label(name), found=shown(record)
        )
    return record


def _family(files: FolderFiles, record: Mapping[str, Any]) -> Family:
    label, kind = files.label(CONFIG), record.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise CheckpointError(
            "{label}: model_type: found {found}, expected one of {names}; this program supports no other families.",
            label=label,
            found=shown(kind),
            names=", ".join(FAMILIES),
        )
    if record.get("quantization_config") is not None:
        raise CheckpointError(
            "{label}: quantization_config: the weights are stored as small integers, but this program needs "
            "floating-point numbers; save the model without quantisation.",
            label=label,
        )
    return FAMILIES[kind]


@dataclass(frozen=True)
class _Import:
    """What one import has before it."""

    files: FolderFiles
    record: Mapping[str, Any]
    family: Family
    settings: Settings
    weights: Weights
    answers: Mapping[str, Any]

    def done(self) -> Imported:
        family, settings = self.family, self.settings
        table = family.table if isinstance(family.table, KeyTable) else family.table(settings)
        found, said = settled(table, self.weights, settings, partial(family.said, settings), tied=family.tied)
        settings.check_all_asked({*WITHOUT_EFFECT, *family.known, *folder_texts.IN_CONFIG})
        own = _record(self.files, GENERATION) if self.files.has(GENERATION) else None
        how, undone = folder_texts.read_generation(own, self.record, family.ids, label=self.files.name)
        how, beyond = _within(how, min(said["src_vocab_size"].value, said["tgt_vocab_size"].value))
        ids = self._forced(_settled(how), said)
        self._check_rows(found, said)
        chosen, languages = self._chosen(said, ids)
        said |= ids | {"unk_id": fixed(None), "append_source_eos": fixed(False)} | folder_texts.around(chosen, ids)
        why = say("the tokenizer supports many languages, and the language cannot be inferred from the text")
        asked = [ask(key, why, *languages) for key in LANGUAGES] if chosen is None else []
        end = folder_texts.end_of(said, writes=bool(said["n_decoder_layers"].value))
        of_ids = {name for name in beyond if name in SPECIAL_IDS and said[name] is ids[name]}
        needed = {*of_ids, *(["eos_id"] if end is None else ()), *(LANGUAGES if languages else ())}
        for name, value in self.answers.items():
            if name not in needed:  # it would have no effect
                raise CheckpointError("{label}: {problem}.", label=self.files.name, problem=not_asked(name, value))
        for name in of_ids & self.answers.keys():
            said[name] = Known(self.answers[name], YOU, "answered")
        if "eos_id" not in of_ids & self.answers.keys():
            said["eos_id"] = end or self._end(said, asked)
        if said["decoder_start_id"] is beyond.get("decoder_start_id") and said["n_encoder_layers"].value:
            asked.append(ask("decoder_start_id", said["decoder_start_id"].evidence))
        if said["decoder_start_id"].value is None:
            said["decoder_start_id"] = said["eos_id" if said["bos_id"].value is None else "bos_id"]
        code = [
            say("{key} in config.json is ignored: no code from the folder is run.", key=key)
            for key in self.record
            if key in ASKS_FOR_CODE
        ]
        if said["positions"].value == "rotary" and decoders.grows(self.record):
            length = say(
                "Rotary positions are scaled dynamically: beyond {n:,} tokens, the original program changes the "
                "angles by which it rotates queries and keys. This program does not, so outputs end at that length.",
                n=said["max_len"].value,
            )
            code.append(length)
        stored, told = (chosen.stored, chosen.notes) if chosen else (None, ())
        notes = (*code, *undone, *told, *(one.evidence for one in beyond.values()))
        label, kind = self.files.name, family.name
        return imported(found, self.weights, said, stored, label=label, kind=kind, notes=notes, asked=asked)

    def _forced(self, ids: Fields, said: Fields) -> Fields:
        """The ids, with those that an output begins with where one is begun."""
        forced = ids["forced_ids"].value
        if forced and not said["n_encoder_layers"].value:
            raise CheckpointError(
                "{label}: forced_bos_token_id: found {found}, expected null. After a prompt of one token, the "
                "original program always writes the token with this id; this program does not.",
                label=self.files.name,
                found=forced[0],
            )
        return ids if said["n_decoder_layers"].value else {**ids, "forced_ids": fixed(())}

    def _check_rows(self, found: Match, said: Fields) -> None:
        """See that the tables have a row for each piece, before anything is made as large as config.json says."""
        for table, size in (("src_table", said["src_vocab_size"]), ("tgt_table", said["tgt_vocab_size"])):
            name = found.sources[table].source if table in found.sources else None
            rows = self.weights.tensors[name].shape[:1] if name else (size.value,)
            if rows != (size.value,):
                raise CheckpointError(
                    "{label}: tensor {tensor} has {rows} rows, expected {expected} ({evidence}).",
                    label=self.weights.label,
                    tensor=shown(name),
                    rows=sum(rows),
                    expected=size.value,
                    evidence=size.evidence,
                )

    def _chosen(self, said: Fields, ids: Fields) -> tuple[Tokenizers | None, tuple[str, ...]]:
        sizes = said["src_vocab_size"].value, said["tgt_vocab_size"].value
        names = self.family.vocabularies
        if "mbart50" in names:  # the same files: they differ in where the language stands
            names = ("mbart50",) if ids["decoder_start_id"].value == ids["eos_id"].value else ("mbart",)
        special = {ids[name].value for name in ("pad_id", "bos_id", "eos_id", "decoder_start_id")} - {None}
        return folder_texts.choose(self.files, names, sizes, self.answers, special)

    def _end(self, said: Fields, asked: list[Field]) -> Known:
        """The id that ends an output, which nothing says."""
        if "eos_id" in self.answers:
            return Known(self.answers["eos_id"], YOU, "answered")
        why = say("neither config.json nor the tokenizer specifies which token ends an output")
        why = said["eos_id"].evidence if said["eos_id"].how == "inferred" else why
        asked.append(ask("eos_id", why))
        return Known(int(said["pad_id"].value == 0), why)  # for the shapes, which do not depend on it


def _within(ids: Fields, size: int) -> tuple[Fields, Fields]:
    """The ids within a vocabulary's size, and the changed fields: small models often keep a family's default ids."""
    beyond: Fields = {}
    for name, one in ids.items():
        if name.endswith(("_id", "_ids", "_sequences")) and one.value is not None:
            several = isinstance(one.value, tuple)
            found = one.value if several else (one.value,)
            kept = tuple(i for i in found if all(0 <= j < size for j in (i if isinstance(i, tuple) else (i,))))
            if kept != found:
                why = say(
                    "{field}: {found} ({evidence}) is beyond the vocabulary of {size:,} tokens, so there is no such "
                    "token.",
                    field=name,
                    found=str(one.value),
                    evidence=one.evidence,
                    size=size,
                )
                beyond[name] = Known(kept if several else None, why, "inferred")
    within = {**ids, **beyond}
    if within["eos_id"].value is None and within["further_eos_ids"].value:
        first, *rest = within["further_eos_ids"].value
        within |= {
            "eos_id": replace(ids["further_eos_ids"], value=first),
            "further_eos_ids": replace(ids["further_eos_ids"], value=tuple(rest)),
        }
    return within, beyond


def _settled(ids: Mapping[str, Known]) -> dict[str, Known]:
    """Ids without those that contradict each other here."""
    said = dict(ids)
    ends = (ids["eos_id"].value, *ids["further_eos_ids"].value)
    if ids["pad_id"].value in ends and ids["pad_id"].value is not None:
        why = say("this id also ends outputs, so it cannot be used for padding")
        said["pad_id"] = Known(None, why, "inferred")
    banned = tuple(i for i in ids["banned_ids"].value if i != said["pad_id"].value)
    said["banned_ids"] = replace(ids["banned_ids"], value=banned)
    return said


ASKED: Final = ("source_language", "target_language", *SPECIAL_IDS)  # what such a folder may leave open
SAVED: Final = """\
model.save_pretrained("DIR/my-gpt2")
tokenizer.save_pretrained("DIR/my-gpt2")"""


class HuggingFaceReader(Reader):
    """Folders with a config.json of transformers."""

    keys = frozenset(("model_type", "architectures", "transformers_version"))
    files = (ADAPTER,)

    def import_folder(self, folder: Path, asked: ImportRequest) -> Imported:
        """With its own tokenizer, and none that was given."""
        label = as_typed(folder, asked.inside)
        check_names(asked.answers, ASKED, label=label)
        if asked.given.has_tokenizer:
            raise CheckpointError(
                "{folder}: a transformers folder uses its own tokenizer. Remove the tokenizer that you gave, or put "
                "that tokenizer's files into the folder.",
                folder=label,
            )
        return import_folder(folder, answers=asked.answers, inside=asked.inside)

    def told(self) -> tuple[Sentence, str, Mapping[str, str]]:
        """How it is written, and each family with the `model_type`s by which it is known."""
        found: dict[str, list[str]] = {}
        for kind, family in FAMILIES.items():
            found.setdefault(family.name, []).append(kind)
        said = say(
            "**A Hugging Face `transformers` folder**, written by `save_pretrained` or downloaded from the "
            "hub, with `config.json`, the weights and the tokenizer. It opens directly. If the model family "
            "supports many languages, the app asks you which ones to use."
        )
        return said, SAVED, {name: ", ".join(kinds) for name, kinds in found.items()}


READER = HuggingFaceReader()
