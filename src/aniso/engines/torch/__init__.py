"""The torch engine: whole tensors (images, channels, H, W) on any device, differentiable.

Volumes have one axis more, (images, channels, D, H, W).

``smoothing``
    the Gaussian over mirrored images and cells
``operator``
    from an image to its diffusion tensor, and A as a linear map
``evolution``
    the engine that :func:`aniso.diffuse` chooses for tensors

The blocks of :mod:`aniso.nn` are made of the same functions.
"""
