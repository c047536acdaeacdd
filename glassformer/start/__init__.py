"""The page Start: the diagram with the sentence running through it, examples, and the ways on."""
