"""One file, one thing: ways to mark a reply."""
