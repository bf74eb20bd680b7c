"""Other people's results, a kind a file: as run folders, or as standings. Names are parsed here and nowhere else."""
