"""Replicas: several servers that share rooms, health checks, metrics, logs."""

from transformer.extensions import Extension

EXTENSION = Extension(name="replicas")
