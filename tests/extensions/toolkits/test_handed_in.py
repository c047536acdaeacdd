"""What toolkits save is uploaded like any model, and refused in a sentence that names what it would compute otherwise.

Whatever an option says, such a file opens, or one sentence says why not.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.extensions.importers.library import opening, readers
from tests.extensions.refusing import made_or_refused, refusal
from tests.extensions.toolkits import test_fairseq, test_joeynmt, test_marian, test_opennmt
from tests.extensions.toolkits.plain import batch
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError
from transformer.text.tokenizer import Tokenizer

TOOLKITS = {"fairseq": test_fairseq, "marian": test_marian, "opennmt": test_opennmt, "joeynmt": test_joeynmt}
OPTIONS = {
    "fairseq": test_fairseq.ARGS,
    "marian": test_marian.OPTIONS,
    "opennmt": test_opennmt.OPT | test_opennmt.OF_VERSION[3],
    "joeynmt": test_joeynmt.STACK.keys() - {"embeddings"},  # of its decoder
}
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2**40), st.floats(allow_nan=False), st.text(max_size=5),
    st.just([]), st.just([1, "a"]), st.just({"a": {"b": 1}}), st.just([[1]]),
)  # fmt: skip


def good(name, folder):
    """What a training leaves; its options may then say what its tensors need not show."""
    return TOOLKITS[name].saved(folder, **({"version": 3} if name == "opennmt" else {}))[0]


def handed_in(folder, made, work, **how):
    for one in (made, work):
        one.mkdir(parents=True)
    handed_folder = pytest.importorskip("glassformer.extensions.uploads.library.upload_folder")
    files = [handed_folder.Received(one.name, one) for one in folder.iterdir()]
    return handed_folder.read(files, made, work=work, **how)


@pytest.mark.parametrize("name", TOOLKITS)
def test_it_is_read_anew_and_gives_the_same(tmp_path, name):
    path, _ = TOOLKITS[name].saved(tmp_path / "theirs")
    made = tmp_path / "made" / "model"
    read = handed_in(path.parent, made, tmp_path / "work", pickles=True)
    assert (read.native, read.left_out) == (False, ())
    theirs, ours = load(path), load(made, inside=tmp_path / "made")
    assert ours.model.config == theirs.model.config
    assert ours.src_tokenizer.pieces == theirs.src_tokenizer.pieces
    ids = batch(19, least=4, pad=theirs.model.config.pad_id)
    with torch.no_grad():
        assert torch.equal(ours.model(ids, ids), theirs.model(ids, ids))


@pytest.mark.parametrize("name", TOOLKITS)
def test_what_computes_something_else_is_refused_by_name(tmp_path, name):
    path = good(name, tmp_path)
    for what, changes in TOOLKITS[name].REFUSED.items():
        TOOLKITS[name].say_otherwise(path, changes)
        refusal(lambda: opening.preview(path), re.escape(what))


@pytest.mark.parametrize("name", TOOLKITS)
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_option_is_understood_or_refused_in_one_sentence(tmp_path, name, data):
    path = good(name, tmp_path / "model")
    said = {data.draw(st.sampled_from(sorted(OPTIONS[name]))): data.draw(ODD)}
    TOOLKITS[name].say_otherwise(path, {"decoder": said} if name == "joeynmt" else said)
    made_or_refused(lambda: load(path), str(path.parent))


SPLITS = Path("checkpoints/reverse/pieces.model")
LETTERS = [piece for piece in Tokenizer(SPLITS.read_bytes()).pieces if len(piece) == 1][:12]


def with_letters(name, folder):
    """A model whose lists are of letters, beside a file of SentencePiece."""
    made = {"version": 3} if name == "opennmt" else {}
    for side in ("src", "tgt") if made else ():
        made |= {f"{side}_subword_type": "sentencepiece", f"{side}_subword_model": "elsewhere/sp.model"}
    path, _ = TOOLKITS[name].saved(folder, **made)
    names = {"fairseq": ["spm.model"], "marian": ["source.spm", "target.spm"]}.get(name, ["sp.model"])
    for one in names:
        shutil.copy(SPLITS, folder / one)
    if name == "opennmt":
        content = torch.load(path, weights_only=False)
        source, target = ["<unk>", "<blank>"], ["<unk>", "<blank>", "<s>", "</s>"]
        torch.save(content | {"vocab": {"src": source + LETTERS, "tgt": target + LETTERS}}, path)
    first = {"marian": ["</s>: 0", "<unk>: 1"], "joeynmt": ["<unk>", "<pad>", "<s>", "</s>"]}.get(name, [])
    lines = {"fairseq": "{} 5", "marian": "{}: {}"}.get(name, "{}")
    listed = [*first, *(lines.format(letter, i) for i, letter in enumerate(LETTERS, len(first)))]
    for file in (*folder.glob("dict.*"), *folder.glob("*vocab*")):
        file.write_text("\n".join(listed) + "\n")
    return path


@pytest.mark.parametrize("name", TOOLKITS)
def test_a_text_is_cut_by_the_file_of_sentencepiece_beside_it(tmp_path, name):
    checkpoint = load(with_letters(name, tmp_path))
    trace = checkpoint.run("".join(LETTERS[:3]))
    assert trace.src_tokens[:3] == tuple(LETTERS[:3])
    assert trace.src_tokens[3:] == ("</s>",) * checkpoint.config.append_source_eos
    assert checkpoint.tgt_tokenizer.decode(checkpoint.tgt_tokenizer.encode(LETTERS[4]).ids) == LETTERS[4]


def test_arrays_are_no_pickles(tmp_path):
    path, _ = test_marian.saved(tmp_path / "marian")
    handed_in(path.parent, tmp_path / "a", tmp_path / "b", pickles=False)
    path, _ = test_fairseq.saved(tmp_path / "fairseq")
    with pytest.raises(CheckpointError, match=r"this server does not accept torch\.save files"):
        handed_in(path.parent, tmp_path / "c", tmp_path / "d", pickles=False)


def test_a_file_of_maps_is_not_listed_as_a_model(tmp_path):
    path, _ = test_marian.saved(tmp_path / "marian")
    assert readers.is_foreign_file(path)
    np.savez(tmp_path / "maps.npz", encoder_weights=np.zeros((1, 1, 2, 2)))
    assert not readers.is_foreign_file(tmp_path / "maps.npz")
    refusal(lambda: opening.preview(tmp_path / "maps.npz"), "no tensor has a name that is usual for a layer")
