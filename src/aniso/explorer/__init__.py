"""The explorer in the browser: see diffusion happen while a slider moves.

What the user does flows through these modules, in this order:

- `scene` what is looked at: a file or a sample, and a slice of it, if it is a volume
- `controls` what can be chosen: made from the fields of the models, with ranges for this scene
- `choices` what was chosen, and the call of the library that it amounts to
- `previews` which part of the image, how coarse, so that the picture follows the hand
- `workers` threads that compute, always for the latest choice and never for those before it
- `rendering`, `overlays`, `scrubbing` what the page gets to see, as `pictures`
- `recipes` the same result as Python or as a command

`session` holds them together for one tab; `page`, `panel`, `stencil_tab` and `server` show it.
"""
