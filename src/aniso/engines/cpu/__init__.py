"""The fast engine: fused loops, compiled with Numba, on several threads.

``evolution``
    what the engine does with a cycle: which kernel, which tiles, which threads
``kernels``, ``arithmetic``
    the loops and elementary functions, written in plain Python
``generate``
    joins them with the formulas into modules that Numba can compile and cache
``crew``
    the threads
"""
