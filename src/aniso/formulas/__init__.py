"""The mathematics of one cell, written once for every engine.

The functions here are plain arithmetic on numbers, so that NumPy arrays, PyTorch tensors,
sparse matrices and compiled scalars can all be passed through them. The few operations that
differ between these kinds of number stand in :mod:`aniso.formulas.operations`.

In the order in which an image flows through them:

``structure``
    products of smoothed derivatives, their eigenvalues
``diffusivities``
    how fast to diffuse across a structure of given strength
``tensors``
    structure in, diffusion tensor out
``weights``
    diffusion tensor in, weights of the stencil out
``bounds``
    how large the spectrum of A can get
``predicted``
    numbers of any size in, diffusion tensor out
``orientation``
    structure in, its direction and coherence out
``cell``
    corner values in, modes, fluxes and corner contributions out
``views``
    the four corners of all cells of an array at once
"""
