"""Part of the Training page: a training that is started here, and watched."""
