"""How fast aniso is, and how much memory it takes. Each module is a command: python -m benchmarks.eed."""
