"""An examination on another device finds the same: see `tests/transformer/test_devices.py`."""

from glassformer.extensions.doctor.library.report import examine
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import plain
from transformer.analysis import parameters
from transformer.analysis.parameters import spectrum


def test_the_doctor_and_what_the_parameters_say_are_the_same(of_name, few_wirings):
    found, said = [], []
    for one in of_name("windows"):
        first = one.model.src_table.detach()
        said.append([parameters.statistics(one.model), parameters.histogram(first), spectrum(first)])
        found.append(examine(one).findings)
    assert plain(said[1]) == plain(said[0])
    assert plain([one.measured for one in found[1]]) == plain([one.measured for one in found[0]])
    assert not any("torch reported" in str(one.measured.said) for one in found[1])
