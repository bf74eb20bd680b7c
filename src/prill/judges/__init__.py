"""One file, one thing: readers of evidence, each speaking to the rules it names."""
