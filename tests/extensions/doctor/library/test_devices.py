"""On another device an examination is the same: see `tests/transformer/test_devices.py`."""

from glassformer.extensions.doctor.library.report import examine
from tests.transformer.devices import of_name as of_name
from tests.transformer.devices import pair as pair
from tests.transformer.devices import plain, same
from tests.transformer.devices import refused_without_cuda as refused_without_cuda
from transformer.analysis import parameters
from transformer.analysis.parameters import spectrum


def test_what_the_parameters_say(pair):
    def work(one):
        first = one.model.src_table.detach()
        return [parameters.statistics(one.model), parameters.histogram(first), spectrum(first)]

    same(pair, work)


def test_the_doctor_finds_the_same(of_name):
    found = [examine(one).findings for one in of_name("windows")]
    assert plain([one.measured for one in found[1]]) == plain([one.measured for one in found[0]])
    assert not any("torch reported" in str(one.measured.said) for one in found[1])


def test_doctor_has_the_option(refused_without_cuda):
    assert refused_without_cuda("doctor")
