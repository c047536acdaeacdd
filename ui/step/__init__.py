"""The page Step through decoding."""
