"""What tests of extensions share with those of the library and of the app; those of pages have theirs beside them."""

from tests.glassformer.conftest import packages_looked_through_once as packages_looked_through_once
from tests.glassformer.conftest import reverse as reverse
from tests.glassformer.conftest import tiny as tiny
from tests.transformer.conftest import checkpoint as checkpoint
from tests.transformer.conftest import one_thread as one_thread
from tests.transformer.conftest import pair as pair
