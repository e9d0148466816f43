"""The explorer in the browser: see diffusion happen while a slider moves.

What the user does flows through these modules, in this order:

- `source`, `scene`, `measures` what is looked at: a file or a sample, and a slice of it, if it is a volume
- `parameters`, `controls` what can be chosen: fields of the models, with ranges for this scene
- `choices`, `masks` what was chosen, and the call of the library that it amounts to
- `previews`, `parts`, `slabs`, `pace` which part of the image or volume, how coarse, so that the picture
  follows the hand
- `workers` threads that compute, always for the latest choice and never for those before it
- `rendering`, `overlays`, `scrubbing` what the page gets to see, as `pictures` in an `album`
- `recipes` the same result as Python or as a command

`tab` is what they share for one tab of the browser, `results` and `extras` compute for it, `memory` says what
is too much, and `session` is what can be done there; `page`, `panel`, `stencil_tab` and `server` show it,
and `guard` decides to whom.
"""
