"""Arrays in blocks: each block evolves by itself, with a halo of its neighbours' pixels around it.

``halo``
    how far a cycle looks, and which pixels a block needs
``costs``
    what cycles and the way of pixels take, by estimate
``exchanges``
    how many cycles to do between two exchanges of halos
``blocks``
    what a worker does with one block
``lazy``
    Dask arrays: the same as a graph of tasks

Within a block the cpu engine (or another) works as on a whole image. It mirrors at the edge of the halo,
which is wrong; but a cycle carries the error no further than it looks, so the pixels that are kept do not see
it. Where a block ends at the border of the image there is no halo, and mirroring is right.
"""
