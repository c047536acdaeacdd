"""The Training page: how a model came to be, and trainings that a visitor starts and watches."""
