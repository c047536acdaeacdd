"""TOML cards of model code (tensor names, config): read, checked, recognised in a file, merged, written anew.

    title = "somebody/transformer"
    licence = "MIT"
    otherwise = "what this code does that others do not, in one sentence"
    optional = ["out.bias"]                      # names below that not every file has; all others recognise the code
    ids = ["pad", "unk", "bos", "eos"]           # its special tokens, from id 0 on

    [names]                                      # the file's -> the model's; {stack}: encoder and decoder
    "{stack}.layers.{n}.attn.w_{q,k,v,o}.{p}" = "{stack}.layers.{n}.self_attn.{q,k,v,out}_proj.{p}"
    "encoder.layers.{n}.norm{1,2}.{gamma,beta}" = "encoder.layers.{n}.{self_attn,ffn}_residual.norm.{weight,bias}"
    "decoder.layers.{n}.joint.{p}" = { split_heads = "decoder.layers.{n}.cross_attn.{k,v}_proj.{p}" }

    [fields]                                     # of config.json, the same in all models
    norm = "post"
    activation = ["relu", "gelu"]                # the first is assumed, as it is usual

    [settings]                                   # stored beside the weights -> a field
    "model_args.n_head" = "n_heads"

`write` makes one of a user's answers: numbers of layers become holes, so other files may have other numbers of layers.
A card has no code: what it cannot say is a general feature of the import, or it is `refused` with the reason. A value
that was stored beside the weights counts more than the card, a tokenizer's ids do, and an answer counts most.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.importers.library import keys
from glassformer.extensions.importers.library.kept_answers import CONFIG_FIELDS
from glassformer.extensions.importers.library.keys import KeyTable, Match, Reshape, Rule, expression, spelled
from glassformer.extensions.importers.library.parts import PARTS
from glassformer.extensions.importers.library.renaming import equal, renamed
from glassformer.extensions.importers.library.report import Field, Imported, ask, inferred
from glassformer.extensions.tokenizers.vocabulary import CALLED
from glassformer.extensions.weight_files.weights import Weights
from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say, say_n
from transformer.i18n.sentence import read_table

FOLDER: Final = Path(__file__).parents[1] / "cards"
ANSWER, NO_CARD = "card", "none"  # `--set card=none` opens a file without its card
_MOST = 256_000  # bytes of a card
_FROM_WIDTH = "1/sqrt(d_model)"

# By the word of a card, which is the name of the reshape in `keys`; by the number of targets. The others have no word.
_IN_TWO: Final = (keys.SPLIT_HEADS_IN_TWO, keys.SPLIT_ROWS_IN_TWO)
_WITHOUT_WORD: Final = (keys.AS_IS, *_IN_TWO, keys.WITH_NO_OUTPUT_MAP, keys.UNIT_VECTORS)
RESHAPES: Final[Mapping[str, tuple[Reshape, ...]]] = {
    **{
        name.lower(): (one,)
        for name, one in vars(keys).items()
        if isinstance(one, Reshape) and one not in _WITHOUT_WORD
    },
    "split_heads": (keys.SPLIT_HEADS, keys.SPLIT_HEADS_IN_TWO),
    "split_rows": (keys.SPLIT_ROWS, keys.SPLIT_ROWS_IN_TWO),
}
IGNORED: Final = {
    "mask": say("it is a mask, rebuilt for each text"),
    "copy": say("it is a second name of another tensor"),
    "formula": say("a formula computes it"),
    "unused": say("the model does not use it"),
}
# Settled with the tokenizers.
_AROUND: Final = ("decoder_start_id", "prepend_source_bos", "append_source_eos", "source_prefix", "source_suffix")
LATER: Final = (*CALLED, *_AROUND)
_TARGET = re.compile(
    r"(src|tgt|output)_table|output_bias|(encoder|decoder)\.(embedding\.positions\.table|embedding\.norm\.P|final_norm\.P"
    r"|layers\.\{n\}\.((self|cross)_attn\.([qkv]|out)_proj\.P|ffn\.(up|down|gate)_proj\.P"
    r"|(self_attn|cross_attn|ffn)_residual\.(output_)?norm\.P))".replace("P", r"(\{p\}|weight|bias)")
)
_KINDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("title", "url", "licence", "otherwise", "refused", "head_width"), str),
    **dict.fromkeys(("needs", "optional", "ids", "lacks", "equal", "distinct", "cases"), list),
    **dict.fromkeys(("names", "ignored", "fields", "settings"), dict),
}
_CASE: Final[Mapping[str, type]] = {"has": list, "lacks": list, "settings": dict, "tied": bool, "fields": dict}
_LENGTHS: Final = {"equal": 2, "distinct": 2}
_TOLD: Final[Mapping[Any, Sentence]] = {
    str: say("a text"),
    bool: say("true or false"),
    dict: say("a table"),
    list: say("a list of texts"),
    "cases": say("a list of tables"),
    **{key: say_n("{n} text", "{n} texts", n) for key, n in _LENGTHS.items()},
}


@dataclass(frozen=True)
class NameCard:
    """One code's names and settings."""

    file: str  # its name without the ending
    record: Mapping[str, Any]  # what the file says
    table: KeyTable
    needs: tuple[str, ...] = field(default=())  # patterns of names that a file must have

    def of(self, key: str) -> Any:
        """What it says of a key; nothing of that kind if it says nothing."""
        return self.record.get(key, _KINDS[key]())

    def claimed(self, names: Sequence[str]) -> list[str]:
        """The prefixes under which names are those of this code; none if they are not."""
        first = re.compile(rf"((?:.*\.)?){expression(self.needs[0]).pattern}")
        prefixes = dict.fromkeys(one[1] for name in names if (one := first.fullmatch(name)))
        return [prefix for prefix in prefixes if not self._missing(prefix, names)]

    def _missing(self, prefix: str, names: Sequence[str]) -> list[str]:
        own = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        missing = [one for one in self.needs if not _there(one, own)]
        return missing or [one for one in self.of("lacks") if _there(one, own)]

    def holds(self, prefix: str, weights: Weights) -> bool:
        """Whether the values of its tensors are those of this code, too, as far as names do not decide it."""
        pairs = {key: [f"{prefix}{name}" for name in self.of(key)] for key in ("equal", "distinct")}
        if not {name for pair in pairs.values() for name in pair} <= weights.tensors.keys():
            return False
        return all(equal(pair[0], pair[1], weights) == (key == "equal") for key, pair in pairs.items() if pair)


def _there(pattern: str, names: Iterable[str]) -> bool:
    return any(map(expression(pattern).fullmatch, names))


@cache
def packaged() -> tuple[NameCard, ...]:
    """The cards that come along."""
    return tuple(made(read_table(file), file.stem) for file in sorted(FOLDER.glob("*.toml")))


def read_card(path: Path, *, inside: Path | None = None) -> NameCard:
    """A card of the user's; a CheckpointError says what is wrong with it."""
    files = FolderFiles(path.parent, inside=inside)
    label = files.label(path.name)
    try:
        record = tomllib.loads(files.read(path.name, limit=_MOST).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "{label}: is not a card in TOML: {problem}.", label=label, problem=shown(str(error))
        ) from error
    record.pop("sentences", None)
    with within(label):
        return made(record, path.stem)


def made(record: Mapping[str, Any], file: str) -> NameCard:
    """The card of a record; a ClauseError names the key that is wrong."""
    _check(record, _KINDS, "")
    if "title" not in record or not (record.get("names") or record.get("refused")):
        raise ClauseError("a card needs the keys {keys}", keys=", ".join(("title", "names")))
    rules = tuple(rule for name, said in record.get("names", {}).items() for rule in _rules(name, said))
    ignored = record.get("ignored", {})
    for name, why in ignored.items():
        _one_of(f"ignored.{name}", why, IGNORED)
    idle = renamed({name: IGNORED[why] for name, why in ignored.items()})
    for case in record.get("cases", ()):
        _check(case, _CASE, "cases.")
    for part in (record, *record.get("cases", ())):
        for name in part.get("fields", {}):
            _one_of("fields", name, CONFIG_FIELDS)
    for name in record.get("settings", {}).values():
        _one_of("settings", name, CONFIG_FIELDS)
    title = record["title"]
    ids = {f"{one}_id": i for i, one in enumerate(record.get("ids", ()))}
    for name in ids:
        _one_of("ids", name, CALLED)
    url = f"https://github.com/{title}" if "/" in title else file
    record = {"url": url, **record, "fields": {**ids, **record.get("fields", {})}}
    name = say("The names are those of {title} ({url}).", title=title, url=record["url"])
    optional = {one for name in record.get("optional", ()) for one, _ in spelled(name)}
    needs = record.get("needs") or [rule.source for rule in rules if rule.source not in optional]
    patterns = (*needs, *record.get("lacks", ()), *ignored)
    for pattern in (*patterns, *(rule.source for rule in rules)):
        if pattern.count("{n}") > 1 or pattern.count("{p}") > 1:
            raise ClauseError(
                "{key}: has {hole} twice; write {other} for a second number", key=pattern, hole="{n}", other="{h}"
            )
    if not needs:
        raise ClauseError("a card needs the keys {keys}", keys="needs")
    return NameCard(file, record, KeyTable(name, (*rules, *idle), of_one_code=True), tuple(needs))


def _check(record: Mapping[str, Any], kinds: Mapping[str, type], before: str) -> None:
    for key, value in record.items():
        _one_of(f"{before}{key}", key, kinds)
        fits = isinstance(value, kinds[key])
        if fits and isinstance(value, list):
            fits = all(isinstance(one, dict if key == "cases" else str) for one in value)
            fits = fits and len(value) == _LENGTHS.get(key, len(value))
        if not fits:
            expected = _TOLD[key] if key in _TOLD else _TOLD[kinds[key]]
            raise ClauseError(
                "{key}: found {found}, expected {expected}", key=f"{before}{key}", found=shown(value), expected=expected
            )


def _one_of(key: str, found: Any, names: Iterable[str]) -> None:
    if not isinstance(found, str) or found not in names:
        raise ClauseError(
            "{field}: found {found}, expected one of {choices}",
            field=key,
            found=shown(found),
            choices=", ".join(sorted(names)),
        )


def _rules(name: str, said: Any) -> Iterator[Rule]:
    word, to = next(iter(said.items())) if isinstance(said, dict) and len(said) == 1 else ("", said)
    if word:
        _one_of(f"names.{name}", word, RESHAPES)
    targets = [to] if isinstance(to, str) else to
    if not isinstance(targets, list) or not all(isinstance(one, str) for one in targets):
        raise ClauseError("{key}: {found} is not a tensor of this program's models", key=name, found=shown(said))
    try:
        lines = list(spelled(name, targets))
    except ValueError:
        raise ClauseError("{key}: {found} has other alternatives in braces", key=name, found=shown(to)) from None
    for source, ours in lines:
        for one in ours:
            if not _TARGET.fullmatch(one) or not set(re.findall(r"\{\w\}", one)) <= set(re.findall(r"\{\w\}", source)):
                raise ClauseError("{key}: {found} is not a tensor of this program's models", key=name, found=shown(one))
        choices = RESHAPES[word] if word else (keys.AS_IS,)
        yield Rule(source, ours, choices[-1] if len(ours) == 2 else choices[0])


def recognised(
    weights: Weights, answers: Mapping[str, Any], own: NameCard | None = None
) -> tuple[NameCard, str] | None:
    """The card that a file's names are those of, and their prefix; refuses one of a code that cannot be opened."""
    wanted, prefix = answers.get(ANSWER), answers.get("prefix")
    names = [*weights.tensors]
    if wanted == NO_CARD or (own is None and not answers.keys().isdisjoint(PARTS)):  # the user says what is what
        return None
    if own is None and wanted is not None:
        _one_of(ANSWER, wanted, [NO_CARD, *(card.file for card in packaged())])
    cards = packaged() if own is None else (own,)
    found = [
        (card, place)
        for card in cards
        if wanted in (None, card.file) or own
        for place in card.claimed(names)
        if (prefix is None or place in (prefix, f"{prefix}.") or (prefix, place) == (NO_CARD, ""))
        and card.holds(place, weights)
    ]
    if own is not None and not found:
        raise ClauseError(
            "the names are not those of the card {title}; missing are {names}",
            title=shown(own.record["title"]),
            names=", ".join(own._missing("", names)[:5]) or own.needs[0],
        )
    if len({card.file for card, _ in found}) > 1:
        raise ClauseError(
            "the names are those of {names}; say which with the answer {answer}",
            names=", ".join(dict.fromkeys(card.record["title"] for card, _ in found)),
            answer=ANSWER,
        )
    if not found:
        return None
    card, place = min(found, key=lambda one: len(one[1]))
    if "refused" in card.record:
        raise ClauseError(
            "the names are those of {title} ({url}), which cannot be opened: {why}; if your code differs, answer "
            "{answer}",
            title=card.record["title"],
            url=card.record["url"],
            why=card.record["refused"],
            answer=f"{ANSWER}={NO_CARD}",
        )
    return card, place


def fields_said(card: NameCard, found: Match, weights: Weights, known: Mapping[str, Any]) -> dict[str, Field]:
    """What a card says of a file, by field: settings beside the weights first, then what all its models have.

    `known` are fields that the file shows, such as d_model and tie_output. What only cases say, of which none holds, is
    asked.
    """
    why = say("It is the same in all models of {title}.", title=card.record["title"])
    said = {"score_scale": None, **card.of("fields")}
    made = {name: _field(name, value, why, known, card) for name, value in said.items()}
    open_: dict[str, list[Any]] = {}
    settled = False
    for case in card.of("cases"):
        holds = _holds(case, found, weights, known)
        settled = settled or holds
        why = say("In {title}, this follows from what the file holds.", title=card.record["title"])
        for name, value in case.get("fields", {}).items():
            if holds:
                made[name] = _field(name, value, why, known, card)
            open_.setdefault(name, []).append(value)
    for name, values in open_.items() if not settled else ():
        if name not in made:
            why = say("In {title}, this depends on settings that the file does not have.", title=card.record["title"])
            made[name] = ask(name, why, *(_value(name, value, known) for value in values))
    for key, name in card.of("settings").items():
        there, value = _setting(key, weights)
        if value is not None:
            why = say("This value is saved with the weights as {key}.", key=shown(there))
            made[name] = Field(name, "read", value, why)
    return made


def _holds(case: Mapping[str, Any], found: Match, weights: Weights, known: Mapping[str, Any]) -> bool:
    own = [name.removeprefix(found.prefix) for name in weights.tensors]
    return (
        all(_there(one, own) for one in case.get("has", ()))
        and not any(_there(one, own) for one in case.get("lacks", ()))
        and case.get("tied") in (None, known.get("tie_output"))
        and all(_setting(key, weights)[1] == value for key, value in case.get("settings", {}).items())
    )


def _setting(key: str, weights: Weights) -> tuple[str, Any]:
    """Where a setting is stored, by the end of its path, and its value."""
    there = (name for name in weights.settings if f".{name}".endswith(f".{key}"))
    name = next(there, key)
    return name, weights.settings.get(name)


def _field(name: str, value: Any, why: Sentence, known: Mapping[str, Any], card: NameCard) -> Field:
    """A field as a card says it; of several words the first is assumed."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        why = say("This is assumed, because it is usual in {title}; other versions differ.", title=card.record["title"])
        return inferred(name, value[0], why, *value)
    return Field(name, "read", _value(name, value, known), why)


def _value(name: str, value: Any, known: Mapping[str, Any]) -> Any:
    if value == _FROM_WIDTH:
        return known.get("d_model", 1) ** -0.5
    return None if value == "none" and name.endswith("_id") else value


def facts(card: NameCard | None, found: Match, weights: Weights, answers: Mapping[str, Any]) -> dict[str, int]:
    """Numbers that reshapes need, as far as they are known before the shapes are."""
    norms = (weights.tensors[one.source].shape[0] for one in found.taken if one.targets[0].endswith("norm.weight"))
    width = next(norms, 1)
    said = fields_said(card, found, weights, {"d_model": width}) if card else {}
    known = heads_of(card, found, weights, width) or said.get("n_heads")
    heads = answers.get("n_heads", known.value if known else None)
    if type(heads) is not int or heads < 1:
        return {}
    return {"n_heads": heads, "d_head": max(1, width // heads)}


def merged(
    card: NameCard | None,
    fields: Iterable[Field],
    found: Match,
    weights: Weights,
    sizes: Mapping[str, tuple[int, ...]],
    answers: Mapping[str, Any],
) -> tuple[list[Field], dict[str, Field]]:
    """The fields with what a card says, and what it says of ids, which wait for the tokenizers."""
    by_name = {one.name: one for one in fields}
    known = {name: one.value for name, one in by_name.items()}
    said = fields_said(card, found, weights, known) if card else {}
    if heads := heads_of(card, found, weights, known.get("d_model")):
        said.setdefault("n_heads", heads)
    said = {name: one for name, one in said.items() if name not in by_name or by_name[name].how != "read"}
    later = {name: said.pop(name) for name in LATER if name in said}
    said |= _head_widths(sizes, answers.get("n_heads", (by_name | said)["n_heads"].value), said)
    return [*(by_name | said).values()], later


def _head_widths(sizes: Mapping[str, tuple[int, ...]], heads: Any, said: Mapping[str, Field]) -> dict[str, Field]:
    """The width of a head, and how many heads share keys, where they are not the usual ones."""
    rows = {one: shape[0] for one in "qk" for name, shape in sizes.items() if name.endswith(f"{one}_proj.weight")}
    width = next((shape[1] for name, shape in sizes.items() if name.endswith("q_proj.weight")), 0)
    if type(heads) is not int or heads < 1 or len(rows) < 2 or rows["q"] % heads or rows["k"] % (rows["q"] // heads):
        return {}
    d_head = rows["q"] // heads
    why = say("It follows from the rows of the maps of queries and keys, and the number of heads.")
    made = {"d_head": d_head, "n_kv_heads": rows["k"] // d_head}
    usual = {"d_head": width / heads, "n_kv_heads": heads}
    return {name: inferred(name, n, why) for name, n in made.items() if name not in said and n != usual[name]}


def heads_of(card: NameCard | None, found: Match, weights: Weights, width: int | None) -> Field | None:
    """The number of heads, where maps are stored head by head or one map serves all heads."""
    whole = next((weights.heads[one.source] for one in found.taken if one.source in weights.heads), None)
    if whole is not None:
        return inferred("n_heads", len(whole.parts), say("The maps are stored head by head."))
    one = next((name for name in weights.tensors if card and name == f"{found.prefix}{card.of('head_width')}"), None)
    if one is None or not width or width % weights.tensors[one].shape[0]:
        return None
    why = say("The map of a head has {n} of the {width} dimensions.", n=weights.tensors[one].shape[0], width=width)
    return inferred("n_heads", width // weights.tensors[one].shape[0], why)


_LAYER = re.compile(r"(encoder|decoder)\.layers\.\d+\.")
_NUMBER = re.compile(r"(?<![^.])\d+(\.\D*)$")
_ENDS = (".weight", ".bias")
_WORD_OF = {reshape: word for word, reshapes in RESHAPES.items() for reshape in reshapes}


def write(imported: Imported, path: Path) -> None:
    """Write the card of an import; refuses a path that is taken, and models of whose names a card or config knows."""
    found, source = imported.named, imported.report.source
    if found is None:
        raise CheckpointError("{label}: its names are known, so they need no card.", label=source)
    if path.exists():
        raise CheckpointError("{file} already exists; choose a new name.", file=str(path))
    answered = {one.name: one.value for one in imported.report.fields if one.how in ("answered", "decided")}
    fields = {name: _plain(name, value) for name, value in answered.items() if name in CONFIG_FIELDS}
    ignored = [name for name in found.ignored if name.startswith(found.prefix)]
    tables = {
        "names": dict(_pattern(one, found) for one in found.taken),
        "ignored": {_numbered(name, found): "unused" for name in ignored},
        "fields": {name: value for name, value in fields.items() if value is not None},
    }
    lines = [f"title = {json.dumps(Path(source).stem)}"]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{json.dumps(name)} = {_toml(value)}" for name, value in table.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _plain(name: str, value: Any) -> Any:
    """A value as TOML has it, which has no null."""
    return "none" if value is None and name.endswith("_id") else [*value] if isinstance(value, tuple) else value


def _pattern(one: Rule, found: Match) -> tuple[str, Any]:
    source, targets = _numbered(one.source, found), list(one.targets)
    if "{n}" in source:
        targets = [_LAYER.sub(r"\1.layers.{n}.", name) for name in targets]
    end = next((end for end in _ENDS if all(name.endswith(end) for name in (source, *targets))), "")
    source, *targets = (f"{name.removesuffix(end)}.{{p}}" if end else name for name in (source, *targets))
    to: Any = targets if len(targets) > 1 else targets[0]
    return source, to if one.reshape is keys.AS_IS else {_WORD_OF[one.reshape]: to}


def _numbered(name: str, found: Match) -> str:
    """A name with a hole for the number of its layer, the last one in what the layer's names begin with."""
    layer = found.layer_of(name)
    return (_NUMBER.sub(r"{n}\1", layer) + name[len(layer) :]).removeprefix(found.prefix)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_toml(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str | int | float):
        raise CheckpointError("{found} cannot be written into a card.", found=shown(value))
    return json.dumps(str(value) if isinstance(value, str) else value)
