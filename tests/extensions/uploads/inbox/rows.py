"""Files that somebody may hand in, each with what is said of them; the numbers are those of a table of bad inputs.

Spoilt ones are made of the checkpoint that reverses letters, or of a tiny random model as other programs save it.
"""

import argparse
import io
import json
import os
import pickle
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import torch
from safetensors.torch import load, save

from tests.browser import foreign_models
from tests.extensions.tokenizers import foreign

REVERSE = {path.name: path.read_bytes() for path in foreign_models.REVERSE.iterdir()}
WEIGHTS, CONFIG, PIECES = "model.safetensors", "config.json", "pieces.model"
MARKER = Path(tempfile.gettempdir()) / f"glassformer-test-marker-{os.getpid()}"


class Touch:
    """Unpickled, it would make a file."""

    def __reduce__(self):
        return os.system, (f"touch {MARKER}",)


def with_files(**files):
    """The checkpoint with other files in the place of its own; a name's dot is an underscore."""
    return REVERSE | {name.replace("_", "."): content for name, content in files.items()}


def with_config(**changes):
    return with_files(config_json=json.dumps(json.loads(REVERSE[CONFIG]) | changes).encode())


def with_text_of_config(text):
    return with_files(config_json=text if isinstance(text, bytes) else text.encode())


def with_header(change):
    """The weights with another header; `change` gets it and the bytes behind it, and may give others."""
    content = REVERSE[WEIGHTS]
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    data = change(header, data) or data
    text = json.dumps(header).encode()
    return with_files(model_safetensors=struct.pack("<Q", len(text)) + text + data)


def with_tensors(change):
    state = load(REVERSE[WEIGHTS])
    change(state)
    return with_files(model_safetensors=save(state))


def set_first(key, value):
    def change(header, _):
        header[first_of(header)][key] = value

    return change


def first_of(header):
    return min((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"])


def moved(by):
    """Every tensor but the first begins further on."""

    def change(header, data):
        first = first_of(header)
        for name, info in header.items():
            if name not in (first, "__metadata__"):
                info["data_offsets"] = [offset + by for offset in info["data_offsets"]]
        return data + bytes(max(by, 0))

    return change


def torch_saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def zipped(entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content, compress_type=method)
    return out.getvalue()


def special(name, mode):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    return entry


def tutorial():
    """A file of torch.save and its tokenizer, as a reader of a tutorial has them."""
    with tempfile.TemporaryDirectory() as folder:
        foreign_models.tutorial(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def hugging_face(**changes):
    """A tiny Marian with a changed config."""
    with tempfile.TemporaryDirectory() as folder:
        foreign_models.marian(Path(folder))
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return files | {CONFIG: json.dumps(json.loads(files[CONFIG]) | changes).encode()}


def _nan(state):
    state["encoder.layers.0.ffn.up_proj.weight"][0, 0] = float("nan")


def _drop(state):
    for name in [name for name in state if "decoder.layers.0" in name]:
        del state[name]


def _extra(state):
    state["surplus.weight"] = torch.ones(2)


def _shape(state):
    state["encoder.layers.0.ffn.up_proj.weight"] = torch.ones(3, 3)


def _dtype(dtype):
    def change(state):
        name = "encoder.layers.0.ffn.up_proj.weight"
        state[name] = state[name].to(dtype)

    return change


def safetensors_rows():
    whole = REVERSE[WEIGHTS]
    deep = b"[" * 10_000 + b"]" * 10_000
    return {
        "T01-empty": (with_files(model_safetensors=b""), "model.safetensors: is too short for a safetensors file"),
        "T01-7": (with_files(model_safetensors=b"1234567"), "too short for a safetensors file (7 bytes)"),
        "T02-1e9": (with_files(model_safetensors=struct.pack("<Q", 10**9) + b"{}"), "a length of 1,000,000,000 bytes"),
        "T02-2^63": (with_files(model_safetensors=struct.pack("<Q", 2**63) + b"{}"), "a length of 9,223,372,036"),
        "T03": (with_files(model_safetensors=whole[:-1000]), "model.safetensors: is cut off: its tensors need"),
        "T04-no-json": (with_files(model_safetensors=struct.pack("<Q", 4) + b"nope"), "its header cannot be read"),
        "T04-deep": (
            with_files(model_safetensors=struct.pack("<Q", len(deep)) + deep),
            "its brackets are nested more than",
        ),
        "T05-overlap": (with_header(moved(-4)), "overlaps the previous tensor"),
        "T05-hole": (with_header(moved(8)), "there is a gap before it"),
        "T05-trailing": (with_files(model_safetensors=whole + b"x" * 9), "9 bytes too long"),
        "T06-overflow": (with_header(set_first("shape", [2**62, 2**62])), "has the impossible shape"),
        "T06-mismatch": (with_header(set_first("shape", [1, 1])), "but its data_offsets cover"),
        "T07": (with_tensors(_nan), None),
        "T08-int64": (with_tensors(_dtype(torch.int64)), "encoder.layers.0.ffn.up_proj.weight"),
        "T08-float8": (with_tensors(_dtype(torch.float8_e4m3fn)), "F8_E4M3"),
        "T08-complex": (with_tensors(_dtype(torch.complex64)), "C64"),
        "T09-missing": (with_tensors(_drop), "decoder.layers.0"),
        "T09-extra": (with_tensors(_extra), "surplus.weight"),
        "T09-shape": (with_tensors(_shape), "encoder.layers.0.ffn.up_proj.weight"),
    }


def pickle_rows():
    evil = torch_saved({"weight": Touch()})
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), script)
    deflated = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(torch_saved({"w": torch.zeros(100_000)}))) as old:
        deflated.write(zipped([(one, old.read(one)) for one in old.namelist()], zipfile.ZIP_DEFLATED))
    return {
        "T10": ({"m.pt": evil}, "m.pt: contains more than tensors"),
        "T10-legacy": (
            {"m.pt": torch_saved({"w": Touch()}, _use_new_zipfile_serialization=False)},
            "contains more than tensors",
        ),
        "T10-bare": ({"m.pt": pickle.dumps(Touch())}, "a pickle file that torch.save did not write"),
        "T11": ({"m.pt": evil + b"garbage" * 9}, "m.pt: "),
        "T12-module": ({"m.pt": torch_saved(torch.nn.Linear(2, 2))}, "m.pt: contains more than tensors"),
        "T12-namespace": ({"m.pt": torch_saved({"args": argparse.Namespace(a=1)})}, "contains no tensors, only"),
        "T13-script": ({"m.pt": script.getvalue()}, "is a TorchScript program"),
        "T13-pt2": ({"m.pt2": zipped([("m/archive_format", b"pt2")])}, "is an exported program (.pt2)"),
        "T14": ({"m.pt": deflated.getvalue()}, "is compressed, which torch.save never does"),
        "T15-html": ({"m.pt": b"<!DOCTYPE html><html>"}, "m.pt: is a web page"),
        "T15-lfs": ({"m.pt": b"version https://git-lfs.github.com/spec/v1\n"}, "is a Git LFS pointer"),
        "T15-empty": ({"m.pt": b""}, "m.pt: is empty"),
    }


def config_rows():
    return {
        "T16-width": (with_config(d_model=10**9), "config.json: d_model: found 1000000000"),
        "T16-layers": (with_config(n_encoder_layers=10**6), "n_encoder_layers: found 1000000"),
        "T17-zero": (with_config(d_ff=0), "d_ff: found 0"),
        "T17-negative": (with_config(n_heads=-1), "n_heads: found -1"),
        "T17-null": (with_config(d_model=None), "d_model: found None"),
        "T17-string": (with_config(max_len="13"), "max_len: found '13'"),
        "T17-heads": (with_config(n_heads=7), "n_heads"),
        "T18-nan": (with_text_of_config('{"d_model": NaN}'), "config.json: NaN is not a valid number in JSON"),
        "T18-1e999": (with_text_of_config('{"d_model": 1e999}'), "the number '1e999' is too large"),
        "T18-digits": (with_text_of_config('{"d_model": ' + "9" * 5000 + "}"), "a number with 5,000 digits"),
        "T18-brackets": (with_text_of_config("[" * 200_000), "its brackets are nested more than"),
        "T19": (with_config(src_vocab_size=99), "99"),
        "T24-negative": (with_config(bos_id=-1), "bos_id: found -1"),
        "T24-large": (with_config(pad_id=10**6), "pad_id: found 1000000"),
    }


def tokenizer_rows():
    model = REVERSE[PIECES]
    pieces = foreign.pieces_of(model)
    return {
        "T21-garbage": (with_files(pieces_model=bytes(range(256)) * 40), "pieces.model: "),
        "T21-cut": (with_files(pieces_model=model[: len(model) // 2]), "pieces.model: "),
        "T21-html": (with_files(pieces_model=b"<html>"), "pieces.model: is not a SentencePiece model but a web page"),
        "T22": (
            with_files(pieces_model=_field(1, _field(1, b"x" * 200_000) + b"\x15" + bytes(4)) + model),
            "pieces.model: ",
        ),
        "T23-duplicate": (with_files(pieces_model=model + _piece(pieces[-1][0], 0.0)), "pieces.model: "),
        "T23-nan": (with_files(pieces_model=model + _piece("zzz", float("nan"))), "pieces.model: "),
        "T23-unknown": (with_files(pieces_model=_piece("a", 0.0) + _piece("b", -1.0)), "pieces.model: "),
    }


def name_rows():
    weights = REVERSE[WEIGHTS]
    return {
        "T25": ({"m.zip": zipped([(special(WEIGHTS, stat.S_IFLNK | 0o777), b"/etc/passwd")])}, "is a link; pack the"),
        "T26-up": ({"m.zip": zipped([("../../model.safetensors", weights)])}, "points outside the archive"),
        "T26-newline": ({"m.zip": zipped([("a\nb.safetensors", weights)])}, "cannot be used as a file name here"),
        "T26-long": ({"x" * 255 + ".pt": b""}, "cannot be used as a file name here"),
        "T26-script": ({"<script>alert(1)<script>.pt": b"<html>"}, "<script>alert(1)<script>.pt: is a web page"),
        "T28-pipe": ({"m.zip": zipped([(special(WEIGHTS, stat.S_IFIFO), b"")])}, "is not a regular file"),
        "T28-device": ({"m.zip": zipped([(special(WEIGHTS, stat.S_IFCHR), b"")])}, "is not a regular file"),
        "bomb": ({"m.zip": zipped([(WEIGHTS, bytes(30_000_000))], zipfile.ZIP_DEFLATED)}, "more than 100 times"),
        "nothing": ({"README.md": b"# about"}, "None of the files contains weights ('README.md')"),
    }


def good_rows():
    return {
        "native": (REVERSE, None),
        "native-zip": ({"mine.zip": zipped(list(REVERSE.items()), zipfile.ZIP_DEFLATED)}, None),
        "T20": (hugging_face(auto_map={"AutoModel": "modeling.Mine"}, _name_or_path="/etc/passwd"), None),
        "pickle": (tutorial(), None),
    }


def _field(number, content):
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number):
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def _piece(text, score):
    return _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score))


ROWS = safetensors_rows() | pickle_rows() | config_rows() | tokenizer_rows() | name_rows() | good_rows()
