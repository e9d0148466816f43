"""Fused kernels for GPUs, written in Triton: whole steps of tensors (images, channels, H, W) or volumes.

``arithmetic``
    the operations of the formulas for Triton
``device_functions``
    the formulas as functions that kernels call
``kernels``
    smoothing, structure and tensors over cells, explicit steps, steps with stored tensors
``devices``
    where kernels run
``launches``
    tiles and arguments of kernels
``steering``
    what a problem needs on a device, and which kernels carry it out
``operators``
    the PyTorch operators: their kernels, shapes and gradients
``evolution``
    the engine
``net_kernels``, ``net``
    the kernels of learned diffusions, and the operator that starts them

On a GPU the kernels are compiled. On CPU tensors they run in Triton's interpreter, if the environment
variable TRITON_INTERPRET is 1 when Triton is imported: slow, for tests. Only this package imports Triton.
"""
