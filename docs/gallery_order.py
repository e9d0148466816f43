"""The order of the gallery: applications, kinds of noise, models and parameters, numerical methods."""

_TASKS = ["denoise", "enhance", "inpaint", "upsample", "colour", "volume", "series", "scale_space"]
_NOISE = ["low_light", "magnitude", "speckle", "hot_pixels", "jpeg"]
_CHOICES = ["models", "diffusivities", "own_diffusivity", "spacing", "signal", "structure", "fixed"]
_CHOICES += ["heat", "network"]
_BEHIND = ["rings", "stencils", "stability", "fed"]
_ORDER = _TASKS + _NOISE + _CHOICES + _BEHIND


def place(filename: str) -> int:
    """Return the position of a script; scripts that are not listed come last."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)
