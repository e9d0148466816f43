"""The mathematics of one cell, written once for every engine.

The functions are plain arithmetic, for NumPy arrays, PyTorch tensors, sparse matrices and compiled scalars.
The few operations that differ between these are in :mod:`aniso.formulas.operations`.

In the order of the data flow:

``gaussian``
    the smoothing kernel, and mirrored pixels
``diffusivities``
    diffusivities across a structure of given strength, or along it
``symmetric``
    eigenvalues and functions of symmetric matrices
``tensors``
    structure in, diffusion tensor out
``weights``
    diffusion tensor in, weights of the stencil out
``bounds``
    bounds on the spectrum of A; one time step
``predicted``
    unconstrained numbers in, diffusion tensor out; weights in cells of k×k pixels
``learned``
    responses of learned kernels in, their weights out; one step of a learned diffusion
``orientation``
    structure in, its direction and coherence out
``cell``
    corner values in, modes, structure, fluxes and corner contributions out
``views``
    the four corners of all cells of an array at once
"""
