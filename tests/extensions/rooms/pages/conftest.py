"""What tests of pages share."""

from tests.pages.conftest import masks as masks
from tests.pages.conftest import open_page as open_page
from tests.pages.conftest import reverse as reverse
from tests.pages.conftest import shipped_checkpoints_alone as shipped_checkpoints_alone
