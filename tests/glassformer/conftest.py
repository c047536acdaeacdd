"""Checkpoints for the tests of the app, opened once, and what is looked at of their runs."""

from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.state.link import Link
from glassformer.state.view import MAIN, View
from tests.pages.conftest import packages_looked_through_once as packages_looked_through_once
from tests.transformer.featured import FEATURED, featured
from tests.transformer.grown import NAME, write_grown
from tests.transformer.one_stack import ALONE, alone
from transformer.checkpoint.load import Checkpoint, load
from transformer.text.tokenizer import Encoding

MARKUP = "<b>&amp;<i onclick=x>"
ONE_HEAD = {"matters_steps": {"layer": 0, "head": 0}, "matters_score": {"cut": (13, 0, 16, 0)}}  # only there
SENTENCES = {"reverse": "glass", "hostile": "glass", "grown": "glass", "decoder": "ba lo mi", "encoder": "ba lo mi"}


@pytest.fixture(scope="session")
def reverse() -> Checkpoint:
    """The shipped model that writes letters backwards: its outputs are known."""
    return load(loading.SHIPPED / "reverse")


@pytest.fixture(scope="session")
def tiny(checkpoint_folder: Path) -> Checkpoint:
    """An untrained model with two vocabularies."""
    return load(checkpoint_folder)


@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    """A function that opens a kind of model once."""
    folder = tmp_path_factory.mktemp("kinds")

    @cache
    def one(kind):
        if kind in FEATURED:
            return featured(kind, folder)
        if kind == "grown":
            return load(write_grown(folder) / NAME)
        if kind == "hostile":
            there = one("reverse")
            sides = {side: hostile(getattr(there, side)) for side in ("src_tokenizer", "tgt_tokenizer")}
            return replace(there, content_hash=kind, **sides)
        return alone(kind, folder) if kind in ALONE else load(loading.SHIPPED / kind)

    return one


def hostile(tokenizer):
    """A tokenizer whose pieces Plotly would read as markup and as fields."""
    found, read = copy(tokenizer), tokenizer.encode
    found.pieces = tuple(p if tokenizer.is_special(i) else f"<u>{p}%{{z}}" for i, p in enumerate(tokenizer.pieces))
    found.encode = lambda text: Encoding(ids := read(text).ids, tuple(map(found.piece, ids)))
    return found


def look(picture, checkpoint, kind, /, *, slot=MAIN, asked=MappingProxyType({}), **fields):
    """A run of a kind of model, with what else its link asks for, and what is looked at of it."""
    page, part = picture.part.page, picture.part.name
    fields |= {page.panel: part} if part else {}
    fields |= ONE_HEAD.get(picture.key, {})
    known = {"source": SENTENCES.get(kind, "ba lo mi"), "companions": (MARKUP,)}
    link = Link(model=checkpoint.name, view=View().but(**fields), **known | asked)
    trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    run, _ = seen(checkpoint, link, trace, kind=page.kind(link.view), slot=slot)
    return run
