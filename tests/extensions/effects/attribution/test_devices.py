"""On another device what matters is the same: see `tests/transformer/test_devices.py`."""

import pytest

from glassformer.extensions.effects.attribution import gradients
from glassformer.extensions.effects.attribution.logit import contributions
from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.target import ask_each, weigh
from tests.transformer.devices import TEXT, same
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from transformer.runs.array_records import whole


@pytest.mark.parametrize("pair", ["fairseq", "windows"], indirect=True)
def test_what_matters_to_a_decoder(pair):
    def work(one):
        asked = ask_each(one, one.run(one.query(TEXT, max_new=5)))
        return (
            [contributions(asked[-1], (5, 6)), weigh(asked[-1]), whole(hiding(asked))],
            gradients.input_times_gradient(asked[-1]),
            whole(gradients.integrating(asked[-1], baseline="mean", n_points=4)),
        )

    same(pair, work)
