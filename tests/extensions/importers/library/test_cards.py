"""A file of a popular repository opens with its card: the numbers of its code, and few questions."""

import pytest
import torch

from glassformer.extensions.importers.library.cards import packaged
from glassformer.extensions.importers.library.opening import load, preview
from tests.extensions.importers.library.repository_models import CODES, drawn, sentences
from tests.extensions.importers.library.tutorial_models import saved


def logits_of(checkpoint, src, tgt):
    return checkpoint.model(tgt if src is None else src, tgt)


@pytest.mark.parametrize("name", CODES)
def test_a_file_of_a_repository_computes_what_its_code_does(tmp_path, name):
    code = CODES[name]
    state = drawn(code)
    src, tgt = sentences(code)
    path = saved(tmp_path / "model.pt", code.beside(state))
    report = preview(path).report
    assert [one.name for one in report.asked] == list(code.asked)
    checkpoint = load(path, answers=code.asked)
    expected = code.run(state, src, tgt, **code.options)
    found = logits_of(checkpoint, src, tgt)
    if code.run.__name__ in ("gordicaleksa", "pbloem"):
        found = found.log_softmax(-1)
    real = torch.ones_like(tgt, dtype=torch.bool) if code.alone else tgt != code.pad
    assert expected.abs().max() > 0.5
    print(name, float((found - expected)[real].abs().max()))
    assert (found - expected)[real].abs().max() < 1e-5
