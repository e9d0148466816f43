"""The fast engine: fused loops, compiled with Numba, on several threads.

``evolution``
    what the engine does with a cycle: which kernel, which tiles, which threads
``kernels``, ``tensors``
    the loops, written in plain Python: those of all models, and those of one
``spacing``
    what both of them need
``arithmetic``, ``indirect``
    elementary functions that vectorise, and how the former loops call the latter
``generate``
    joins them with the formulas into modules that Numba can compile and cache
``crew``
    the threads
"""
