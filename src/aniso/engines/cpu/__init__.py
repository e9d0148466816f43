"""The fast engine: fused loops, compiled with Numba, on several threads.

``evolution``, ``volume_evolution``, ``base``
    what the engine does with a cycle: which kernel, which tiles, which threads
``kernels``, ``tensors``, ``volume_kernels``, ``volume_tensors``
    the loops over images and volumes, written in plain Python: those of all models, and those of one
``volume_formulas``, ``volume_spectra``
    the loops over cells of a volume: for any formula, and for functions of the eigenvalues
``net``, ``net_kernels``
    learned diffusions: the stages of a net, and the loops over images
``rows``, ``means``, ``volume_rows``
    what they are made of, and how the loops of all models call those of one
``arithmetic``
    elementary functions that vectorise
``generate``
    joins them with the formulas into modules that Numba can compile
``function_texts``, ``user_functions``
    the texts of functions that it joins, and which functions of the user are the same
``inner``
    compiling functions that only compiled code calls
``cache``, ``private_folder``
    compiled kernels on disk, and where nobody else can write them
``threads``
    the threads
"""
