"""The explorer in the browser: the result follows the sliders.

A user's action passes through these modules, in this order:

- `scene`: the image, or the slice of a volume, from a file or a sample, its statistics, and parts of it
- `choices`, `unknown_pixels`: what was chosen, and the corresponding call of the library
- `controls`: parameters with ranges for this scene
- `previews`: which part of the image or volume is computed, and how coarse
- `workers`: threads that compute for the latest choice and drop earlier ones
- `rendering`: what the page shows, as `pictures` in an album
- `export`: the result as a Python program or as a command

`session` is one browser tab: its state, its threads and the actions of the user; `results` computes for it.
`layout`, `panel` and `stencil_tab` are the page, `server` serves it, and `guard` controls access.
"""
