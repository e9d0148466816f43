"""Files on the command line: what to read, where to write."""
