"""The explorer in the browser: the result follows the sliders.

A user's action passes through these modules, in this order:

- `source`, `scene`: the image, or the slice of a volume, from a file or a sample, and its statistics
- `choices`, `unknown_pixels`, `calls`: what was chosen, and the corresponding call of the library
- `controls`: parameters with ranges for this scene
- `parts`, `previews`, `slabs`: which part of the image or volume is computed, and how coarse
- `workers`: threads that compute for the latest choice and drop earlier ones
- `rendering`, `overlays`: what the page shows, as `pictures` in an album
- `export`: the result as a Python program or as a command

`tab` is the shared state of one browser tab, `results` and `extras` compute for it, `memory` rejects volumes
that are too large, and `session` has the actions of the user. `layout`, `panel` and `stencil_tab` are the
page, `server` serves it, and `guard` controls access.
"""
