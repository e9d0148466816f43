"""The verbs on Dask arrays: parameters from a sample of windows, then block by block, lazily."""
