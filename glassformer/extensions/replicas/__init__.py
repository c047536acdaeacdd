"""Replicas: several servers that share rooms, health checks, metrics, logs."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="replicas",
    needs=("classroom",),
    stores="glassformer.extensions.replicas.room_store:chosen",
    server="glassformer.extensions.replicas.server_part:SERVER",
)
