"""Zarr in, Zarr out: arrays larger than memory, on the workers of a cluster.

``opened``
    what a Zarr array or OME-Zarr group holds, and an empty one like it
``budget``
    how large blocks may be, and how many cycles to do in a pass
``progress``
    what is done, on disk: an interrupted run goes on where it stopped
``passes``
    pass after pass over all blocks, from one store into the next
``cluster``
    workers on this machine, or those of a scheduler

One pass per exchange of halos: a worker reads a block with its halo from one store, carries out the cycles of
the pass, and writes the block into the next store. So memory is bounded by the size of a block, whatever the
size of the array and the number of steps.
"""
