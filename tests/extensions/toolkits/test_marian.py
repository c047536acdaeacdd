"""A model.npz of Marian's opens and computes what Marian computes; one that is none is refused in a sentence."""

import io
import zipfile

import numpy as np
import pytest
import yaml

from glassformer.extensions.importers.library import opening
from tests.extensions.refusing import refusal
from tests.extensions.toolkits.plain import check
from tests.extensions.toolkits.references import marian
from transformer.checkpoint.opening import load

SIZES = (23, 19)
OPTIONS = {
    "type": "transformer", "dim-emb": 12, "dim-vocabs": list(SIZES), "enc-depth": 2, "dec-depth": 3,
    "transformer-heads": 3, "transformer-dim-ffn": 20, "transformer-ffn-depth": 2,
    "transformer-ffn-activation": "swish", "transformer-preprocess": "", "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d", "transformer-decoder-autoreg": "self-attention",
    "transformer-tied-layers": [],
    "tied-embeddings": False, "tied-embeddings-src": False, "tied-embeddings-all": False, "dim-rnn": 1024,
    "enc-cell": "gru", "dec-cell": "gru", "skip": False, "layer-normalization": False, "right-left": False,
    "transformer-aan-depth": 2, "transformer-no-projection": False, "transformer-train-position-embeddings": False,
    "transformer-guided-alignment-layer": "last", "ulr": False, "lemma-dim-emb": 0, "input-types": [],
    "version": "v1.11.0 f00b062 2022-02-08 08:39:24 -0800",
}  # fmt: skip
SHARED = {"dim-vocabs": [23, 23]}
VARIANTS = {
    "two tables": {},
    "larger target": {"dim-vocabs": [15, 29], "transformer-ffn-activation": "relu"},
    "tied": {"tied-embeddings": True, "transformer-ffn-activation": "gelu"},
    "all tied": SHARED | {"tied-embeddings-all": True, "tied-embeddings": True},
    "norms around": {"transformer-postprocess-emb": "nd", "transformer-postprocess-top": "n"},
}


def saved(folder, *, learned=False, packed=False, array=None, **changes):
    """A folder as a training leaves it."""
    options = OPTIONS | changes
    sizes = options["dim-vocabs"]
    reference = marian(options, sizes, learned=learned)
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(options).encode() + b"\0"
    arrays = {name: value.numpy() for name, value in reference.state.items()}
    arrays["special:model.yml"] = np.frombuffer(text, np.int8) if array is None else array
    (np.savez_compressed if packed else np.savez)(folder / "model.npz", **arrays)
    for side, size in zip(("src", "trg"), sizes, strict=True):
        shared = sizes[0] == sizes[1]
        (folder / f"vocab.{side}.yml").write_text(vocabulary(size, "x" if shared else side))
    return folder / "model.npz", reference


def vocabulary(size, name):
    listed = ["</s>: 0", "<unk>: 1", '"\\xc4rger": 2', '"\'": 3', "'#': 4", "no: 5", "1.5: 6"]
    return "\n".join([*listed, *(f"▁{name}{i}: {i}" for i in range(len(listed), size))]) + "\n"


@pytest.mark.parametrize("name", VARIANTS)
def test_it_computes_what_marian_does(tmp_path, name):
    path, reference = saved(tmp_path, **VARIANTS[name])
    sizes = (OPTIONS | VARIANTS[name])["dim-vocabs"]
    checkpoint = load(path)
    check(checkpoint, reference, size=sizes, least=2)
    config = checkpoint.model.config
    assert (config.decoder_start_id, config.eos_id, config.banned_ids) == (max(sizes), 0, (1,))


def test_learned_positions_and_a_vocabulary_as_yaml_has_it(tmp_path):
    path, reference = saved(tmp_path, learned=True)
    checkpoint = load(path)
    check(checkpoint, reference, size=SIZES, least=2)
    tokenizer = checkpoint.src_tokenizer
    assert tokenizer.pieces[:7] == ("</s>", "<unk>", "Ärger", "'", "#", "no", "1.5")
    assert tokenizer.encode("no 1.5 what").ids == (5, 6, 1)


REFUSED = {
    "type": {"type": "s2s"},
    "transformer-decoder-autoreg": {"transformer-decoder-autoreg": "rnn"},
    "transformer-preprocess": {"transformer-preprocess": "n", "transformer-postprocess": "da"},
    "transformer-postprocess-top": {"transformer-postprocess-top": "an"},
    "transformer-tied-layers": {"transformer-tied-layers": [1, 1, 2]},
    "transformer-no-projection": {"transformer-no-projection": True},
    "transformer-ffn-depth": {"transformer-ffn-depth": 3},
    "right-left": {"right-left": True},
    "lemma-dim-emb": {"lemma-dim-emb": 32},
    "output-omit-bias": {"output-omit-bias": True},
    "dim-vocabs": {"dim-vocabs": [23, 19, 19]},
    "dim-vocabs: found [15, 19]": {"dim-vocabs": [15, 19]},
    "transformer-of-tomorrow": {"transformer-of-tomorrow": 1},
    "n_heads": {"transformer-heads": 5},
}


def say_otherwise(path, changes):
    replaced(path, yaml.safe_dump(OPTIONS | changes))


def replaced(path, text):
    with np.load(path) as there:
        arrays = dict(there)
    arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0", np.int8)
    np.savez(path, **arrays)


def test_files_that_are_no_such_arrays(tmp_path):
    for message, how in {
        "is compressed": {"packed": True},
        "of 'object'|plain numbers|objects|Object arrays|damaged": {"array": np.array([{"a": 1}], dtype=object)},
        "must be a text of at most 1,000,000 bytes": {"array": np.zeros(4)},
    }.items():
        path, _ = saved(tmp_path / message[:5], **how)
        refusal(lambda path=path: opening.preview(path), message)
    path, _ = saved(tmp_path / "good")
    content = path.read_bytes()
    for share in (0.0, 0.3, 0.9, 0.999):
        path.write_bytes(content[: int(len(content) * share)])
        refusal(lambda path=path: opening.preview(path))


def test_a_claim_of_more_than_there_is_takes_no_memory(tmp_path):
    path, _ = saved(tmp_path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 12)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", header.getvalue())
    refusal(lambda: opening.preview(path), "claims to have a different number of bytes than it has")


def test_settings_and_vocabularies_that_are_none_are_told_by_their_file(tmp_path):
    path, _ = saved(tmp_path)
    for text in ("[1, 2]", "a: &x [1]\nb: *x", "a: !!python/object/apply:os.system [x]", "[" * 2000):
        replaced(path, text)
        refusal(lambda: opening.preview(path), r"special:model\.yml")
    replaced(path, yaml.safe_dump(OPTIONS))
    for pieces, message in (
        ("the: 0\n", "the token with id 0 must be </s>"),
        ("</s>: 0\nthe: 2\n", "none has the id 1"),
        ("</s>: 0\nthe five\n", "line 2"),
        ("</s>: 0\n&a b: 1\n*a : 2\n", "line|YAML|alias"),
        (vocabulary(40, "x"), "40 tokens, but its embedding table"),
    ):
        for side in ("src", "trg"):
            (tmp_path / f"vocab.{side}.yml").write_text(pieces)
        refusal(lambda: opening.preview(path), message)
