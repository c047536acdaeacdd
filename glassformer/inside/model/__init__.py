"""Part of the Inside page: the diagram of the loaded model, its shapes, and what it costs."""
