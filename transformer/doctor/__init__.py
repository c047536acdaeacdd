"""The doctor: is a checkpoint healthy? `examination.examine` runs every test of it; a report says what was found."""
