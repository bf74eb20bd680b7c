"""One file, one thing: ways to serve a model."""
