"""A folder as a user fills it, beside the shipped checkpoints: made on the spot, one of each kind, for one server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.browser import foreign_models
from tests.browser.made_up import IMAGE, NAME, write_made_up
from tests.extensions.maps.library.made_up import SOURCE, weights
from tests.extensions.tokenizers.filling import filling


def write_own_folder(folder: Path) -> Path:
    """Make the folder, which is `folder / "own"`, and return it, for `--checkpoints`."""
    own = write_made_up(folder / "own")
    _fill_the_card(own / NAME)
    filling(own)
    _write_maps(own / "cat.npz")
    foreign_models.tutorial(own)
    return own


def _fill_the_card(checkpoint: Path) -> None:
    """A card full of markup, and a training of three epochs."""
    card = json.loads((checkpoint / "card.json").read_text(encoding="utf-8"))
    card |= {
        "data": f"Data {IMAGE}",
        "licence": "**none** $x^2$",
        "scores": [{"file": IMAGE, "decoding": ":red[x]", "bleu": 1.5, "<b>key</b>": "<i>value</i>"}],
        "training": {"epochs": 2, "command": f"train {IMAGE}"},
    }
    (checkpoint / "card.json").write_text(json.dumps(card), encoding="utf-8")
    (checkpoint / "training.csv").write_text("epoch,loss,dev_loss\n1,3,2\n2,2.5,\n3,2,1.5\n", encoding="utf-8")


def _write_maps(file: Path) -> None:
    """A file of maps as numpy alone writes it."""
    labels = np.array(SOURCE)
    np.savez_compressed(
        file,
        encoder_weights=weights(4, 3, 5, 5),
        encoder_queries=labels,
        encoder_keys=labels,
        checkpoint="bert-tiny",
        sentence="the cats",
    )
