"""Charts of trainings: plain figures, as those of `charts`."""
