"""Command-line options, parsing and help."""
