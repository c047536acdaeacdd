"""What stands in the dialog that changes the model, above a run: AppTest does not open dialogs again."""

from glassformer.extensions.what_if import what_if_panels
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import head, source_box
from glassformer.runs.open_run import open_run
from glassformer.state import session

session.begin("what if")
row = head("What if")
checkpoint = sidebar()
source_box(checkpoint, row)
what_if_panels.draw(checkpoint)
run = open_run(checkpoint)
if run is not None:
    run.publish()
