"""Independent calculations that tests and benchmarks compare aniso with; none of them uses aniso."""
