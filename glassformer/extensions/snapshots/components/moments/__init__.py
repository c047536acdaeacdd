"""Training slider component: one stop per training snapshot."""
