"""Measurements of models and traces: functions over arrays, and the code that supplies the arrays."""
