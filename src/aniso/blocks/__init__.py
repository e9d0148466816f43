"""Arrays in blocks: each block is computed on its own, surrounded by a halo of pixels of its neighbours.

``halo``
    the reach of a cycle, and the pixels that a block needs
``costs``
    estimated times of cycles and transfers
``stages``
    local operations one after another, and how they are run in memory
``groups``
    which of them are computed between two exchanges of halos, and how they are run on one block
``lazy``
    Dask arrays: the same as a graph of tasks
``sample``
    windows of a large array, from which parameters are estimated
``stores``
    Zarr arrays on disk

Within a block an engine works as on a whole image. It mirrors at the edge of the halo, which is wrong, but
errors propagate no farther than the reach of the cycles, and the pixels of the block itself are exact. At the
border of the image there is no halo, and mirroring is right.
"""
