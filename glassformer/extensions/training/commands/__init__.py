"""The command line of training: prepare, train, task, evaluate."""
