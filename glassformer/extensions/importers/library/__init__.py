"""Read weights of other programs, and report exactly what was understood."""
