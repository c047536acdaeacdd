"""The view that draws every chart in the browser."""
