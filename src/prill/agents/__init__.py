"""One file, one thing: programs that post-train."""
