"""Parts of the page How pieces are chosen: a step before the draw, and many draws."""
