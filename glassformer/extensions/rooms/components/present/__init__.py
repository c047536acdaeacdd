"""The presentation in the browser: no sidebar, large type."""
