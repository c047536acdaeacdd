"""The code that a card prints, executed inside the model, does what the card's change does."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.effects import mistake_panels
from glassformer.extensions.effects.mistake_cards import CARDS, other_heads
from glassformer.extensions.effects.mistake_figures import Side
from glassformer.runs import loading
from transformer.model.layers import Residual
from transformer.model.taps import NO_TAP, Replacer, Rewirer, tap_of
from transformer.model.transformer import Transformer

BY_NAME = {card.mistake: card for card in CARDS}
SENTENCES = (
    ("reverse", "glass"), ("reverse", "aab"), ("zh-en", "他每天坐公共汽车去学校。"), ("en-fr", "I like coffee.")
)  # fmt: skip
IN_THE_MODEL = ("inverted", "axis", "scale", "twice", "positions", "shifted", "norms", "residual")


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def execute(code, **given):
    """All names after the code has run."""
    names = {"torch": torch, "math": math, "nn": torch.nn, **given}
    exec(code, names)
    return SimpleNamespace(**names)


def side_of(name, source):
    checkpoint = loading.open_checkpoint(loading.usable()[name])
    return Side(checkpoint, checkpoint.query(source))


def weighing(code, **given):
    """Weights by code that goes on from scores; the softmax, where the code leaves it out, is torch's."""

    def weigh(how, scores, mask):
        if "masked_fill" not in code and mask is not None:  # the code is about what comes after the mask
            scores = scores.masked_fill(~mask, -torch.inf)
        here = given | {"scores": scores, "v": torch.eye(scores.size(-1)), "T": scores.size(-1)}
        done = execute(code, **here)
        return done.out if hasattr(done, "out") else done.scores.softmax(dim=-1)  # with v = 1, the output is weights

    return lambda how: replace(how, weigh=weigh)


def wired(mistake, code, side, src, monkeypatch):
    """A tap that runs the code where it stands in a program; what stands around a sub-layer is patched."""
    config, model = side.checkpoint.config, side.checkpoint.model
    if mistake == "inverted":
        return tap_of(Rewirer({"decoder.*.self_attn.scoring": weighing(code)}))
    if mistake == "axis":
        given = {"src": src, "pad_id": config.pad_id}
        return tap_of(Rewirer({"encoder.*.self_attn.scoring": weighing(code, **given)}))
    if mistake == "twice":
        return tap_of(Rewirer({"*_attn.scoring": weighing(code)}))
    if mistake == "scale":
        product = lambda q, k, scale: execute(code, q=q, k=k, d_head=config.d_head).scores  # noqa: E731
        return tap_of(Rewirer({"*_attn.scoring": lambda how: replace(how, similarity=product)}))
    if mistake in ("norms", "residual"):

        def around(self, x, sublayer, *, onto=None, tap=NO_TAP):
            return execute(code, x=x, norm=self.norm, sublayer=sublayer).x

        monkeypatch.setattr(Residual, "forward", around)
        return NO_TAP

    def summed(stack):
        """The embedding's sum by the code, of the scaled vectors that come by."""

        def visit(tokens):
            scale = model.stack(stack).embedding.scale if "sqrt" in code else 1.0
            own = lambda ids: tokens / scale  # noqa: E731
            ids = torch.zeros(1, tokens.size(1), dtype=torch.long)
            given = {"ids": ids, "tgt": ids, "T": tokens.size(1), "d_model": config.d_model, "embedding": own}
            return execute(code, positions=model.stack(stack).embedding.positions.table, **given).x

        return visit

    stacks = ("decoder",) if mistake == "shifted" else ("encoder", "decoder")
    nothing = {f"{stack}.embedding.positions": torch.zeros_like for stack in stacks}
    return tap_of(Replacer({f"{stack}.embedding.tokens": summed(stack) for stack in stacks} | nothing))


@pytest.mark.parametrize(("name", "source"), [SENTENCES[0], *(pytest.param(*one, marks=pytest.mark.deep)
                                                               for one in SENTENCES[1:])])  # fmt: skip
@pytest.mark.parametrize("mistake", IN_THE_MODEL)
@torch.inference_mode()
def test_the_printed_code_is_what_the_card_runs(mistake, name, source, monkeypatch):
    card, side = BY_NAME[mistake], side_of(name, source)
    found = mistake_panels.look(card, side)
    model, src = side.checkpoint.model, torch.tensor([found.right.src_ids])
    right_ids = found.right.read_ids
    for code, trace, read in (
        (card.said.right, found.right, found.read_right),
        (card.said.wrong, found.wrong, found.read_wrong),
    ):
        with monkeypatch.context() as patched:
            tap = wired(mistake, str(code), side, src, patched)
            logits = model(src, torch.tensor([right_ids]), tap=tap)[0]
            losses = -logits.log_softmax(-1)[range(len(right_ids)), list(found.right.tgt_ids)].numpy()
            np.testing.assert_allclose(losses, read.losses, atol=1e-3, rtol=1e-3)
            for n, chosen in enumerate(trace.tgt_ids, start=1):  # each prefix whole: some mistakes are not causal
                row = model(src, torch.tensor([trace.read_ids[:n]]), tap=tap)[0, -1]
                assert row[chosen] >= row.max() - 1e-3


@torch.inference_mode()
def test_the_printed_code_of_the_leak():
    card, side = BY_NAME["leak"], side_of("reverse-leak", "glass")
    found = mistake_panels.look(card, side)
    leak = found.sides.read_right.checkpoint
    src, tgt = torch.tensor([found.right.src_ids]), torch.tensor([found.right.read_ids])

    def model(src, tgt, tgt_mask=None):
        """A program's model: None is no mask."""
        memory, n = leak.model.encode(src), tgt.size(1)
        mask = torch.ones(n, n).bool() if tgt_mask is None else tgt_mask
        hidden = leak.model.decoder(tgt, leak.model.target_table, memory, mask, leak.model.source_mask(src))
        return leak.model.project(hidden)

    for code, read in ((card.said.wrong, found.read_right), (card.said.right, found.read_wrong)):
        logits = execute(str(code), model=model, src=src, tgt_in=tgt, T=tgt.size(1)).logits[0]
        losses = -logits.log_softmax(-1)[range(tgt.size(1)), list(found.right.tgt_ids)].numpy()
        np.testing.assert_allclose(losses, read.losses, atol=1e-4)


@torch.inference_mode()
def test_the_printed_code_of_rows_of_minus_infinity():
    card, side = BY_NAME["nan"], side_of("reverse", "glass")
    found = mistake_panels.look(card, side)
    scores = torch.randn(1, 2, found.right.n_steps, found.right.n_steps)
    weights = execute(str(card.said.wrong), scores=scores, T=scores.size(-1)).weights
    (drawn,) = [found.read_wrong.values[site] for site in found.read_wrong.values if "0.self_attn.weights" in site]
    np.testing.assert_array_equal(np.isnan(weights[0, 0].numpy()), np.isnan(drawn[0]))
    assert np.isnan(drawn[0, 0]).all()
    assert execute(str(card.said.right), scores=scores, T=scores.size(-1)).weights.isfinite().all()


@torch.inference_mode()
def test_the_printed_code_of_the_wrong_number_of_heads():
    card, side = BY_NAME["heads"], side_of("reverse", "glass")
    config, state = side.checkpoint.config, side.checkpoint.model.state_dict()
    (change,) = other_heads(config)
    found = mistake_panels.look(card, side)
    src, tgt = torch.tensor([found.right.src_ids]), torch.tensor([found.right.read_ids])

    def made(d_model, n_heads=change.n):
        return Transformer(replace(config, n_heads=n_heads, n_kv_heads=n_heads, d_head=d_model // n_heads))

    for code, read in ((card.said.wrong, found.read_wrong), (card.said.right, found.read_right)):
        model = execute(str(code), Transformer=made, d_model=config.d_model, config=config, state=state).model
        losses = -model.eval()(src, tgt)[0].log_softmax(-1)[range(tgt.size(1)), list(found.right.tgt_ids)].numpy()
        np.testing.assert_allclose(losses, read.losses, atol=1e-4)


def test_the_printed_code_of_the_embedding_is_as_many_times_too_large():
    card = BY_NAME["embedding"]
    torch.manual_seed(0)
    given = {"n_pieces": 1000, "d_model": 64, "ids": torch.arange(1000), "positions": 0.0}
    wrong, right = (execute(str(code), **given).x.detach() for code in (card.said.wrong, card.said.right))
    assert float((wrong.norm(dim=-1) / right.norm(dim=-1)).mean()) == pytest.approx(8, rel=0.05)
    for d_model in (16, 256, 2048):
        for scales in (True, False):
            config = replace(side_of("reverse", "glass").checkpoint.config, d_model=d_model, scale_embedding=scales)
            (change,) = card.change(config)
            assert change.by / (d_model**0.5 if scales else 1) == pytest.approx(d_model**0.5)


def test_every_card_is_executed_here():
    assert {*IN_THE_MODEL, "leak", "nan", "heads", "embedding"} == set(BY_NAME)
