"""Read weights that other programs wrote, and say exactly what was understood of them."""
