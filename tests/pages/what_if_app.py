"""What stands in the dialog that changes the model, above a run: AppTest does not open dialogs again."""

from ui.frame import whatif
from ui.frame.sidebar import sidebar
from ui.frame.source_box import head, source_box
from ui.runs.open_run import open_run
from ui.state import session
from ui.state.view import MAIN

session.begin("what if")
row = head("What if")
checkpoint = sidebar(shows_run=True)
source_box(checkpoint, row)
whatif.draw(checkpoint, MAIN)
run = open_run(checkpoint)
if run is not None:
    run.publish()
