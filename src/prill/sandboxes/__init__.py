"""One file, one thing: ways to shut a program in."""
