"""The page Attention: all heads, one map, flow, one weight, what heads do."""
