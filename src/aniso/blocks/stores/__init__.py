"""Filtering of Zarr arrays that are larger than memory, on the workers of a cluster.

``places``, ``remote``, ``urls``
    where stores are: a folder on a disk, or objects with a common prefix; paths and URLs
``clients``, ``zarr_store``, ``lease``
    object stores: connections and errors, the store that Zarr sees, and the lock of a run
``zarr_array``
    Zarr arrays and OME-Zarr groups: their axes and spacing, and empty copies of them
``budget``
    the size of blocks, and the stages in a pass
``journal``
    the journal of a run, in the place of its target: an interrupted run continues where it stopped
``ends``
    what a pass reads and writes, and frames of a Zarr array as Dask arrays
``holes``
    unknown pixels, and what is computed before the first pass to fill them in
``passes``
    passes over all blocks, each from one store into the next
``pyramid``, ``plates``
    lower resolutions of the result; plates and wells, which are groups of images
``dask_arrays``
    Dask arrays, written to stores
``cluster``
    workers on this machine, or those of a scheduler

There is one pass per exchange of halos: a worker reads a block of each image that the pass needs, with its
halo, computes the stages of the pass, and writes the block of each image that they change into a new store.
Memory is bounded by the size of a block, whatever the size of the array and the number of steps.
"""
