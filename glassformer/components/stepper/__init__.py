"""The stepper in the browser."""
