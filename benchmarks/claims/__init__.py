"""The claims of the paper, one module per group: what is said, where, how it is tested, what came out."""
