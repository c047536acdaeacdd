"""The Checkpoints page lists exactly the families of Hugging Face's folders that open."""

from glassformer.extensions.huggingface.folder import FAMILIES
from tests.pages.conftest import CHECKPOINTS
from tests.pages.test_checkpoints import unescaped


def test_the_families_that_open_are_those_of_the_code(open_page):
    test = open_page(CHECKPOINTS, model="reverse")
    (families,) = [one.value.iloc[:, 0] for one in test.table if "GPT-2" in one.value.index]
    said = ", ".join(unescaped(kinds) for kinds in families)
    assert sorted(said.split(", ")) == sorted(FAMILIES)
