"""Uploads: the queue for the worker process, and the upload store."""
