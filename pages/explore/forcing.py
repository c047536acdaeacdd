"""Teacher forcing: how probable the model finds the right output, piece by piece."""

from ui.forcing import forcing_panels
from ui.forcing.forcing_pictures import FORCING
from ui.frame.run_page import run_page

run_page(FORCING, forcing_panels.draw)
