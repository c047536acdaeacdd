"""Teacher forcing: how probable the model finds the right output, piece by piece."""

from glassformer.forcing import forcing_panels
from glassformer.forcing.forcing_pictures import FORCING
from glassformer.frame.run_page import run_page

run_page(FORCING, forcing_panels.draw)
