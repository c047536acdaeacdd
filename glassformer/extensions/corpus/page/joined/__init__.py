"""Part of the page Over a corpus: queries and keys of a head."""
