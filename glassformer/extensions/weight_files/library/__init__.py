"""Open files of weights that other programs saved, one tensor at a time; read `weights` first."""
