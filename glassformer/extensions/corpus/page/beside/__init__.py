"""Part of the page Over a corpus: two runs beside each other."""
