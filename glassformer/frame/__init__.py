"""Page layout around a run: sidebar, header, source box, sentence stepper."""
