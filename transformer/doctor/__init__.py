"""The doctor: is a checkpoint healthy? `examination.examine` runs all tests and returns a report."""
