"""Diffusion models: which tensor steers the diffusion. Each is a small frozen set of parameters.

A model gives the width of the presmoothing Gaussian (`sigma`), the width of the Gaussian that averages the
structure tensor (`rho`), the formula that turns structure into a diffusion tensor, and bounds of the
eigenvalues of that tensor, from which the stable step follows. Engines do the rest, for every model alike.
"""

from __future__ import annotations

import re

from aniso.formulas.diffusivities import DIFFUSIVITIES as DIFFUSIVITIES
from aniso.models import image_driven
from aniso.models.base import ImageDriven, Model, TensorFormula
from aniso.models.fixed import FixedTensor
from aniso.models.image_driven import *  # noqa: F403 (a new model is named there)

__all__ = ["DIFFUSIVITIES", "FixedTensor", "ImageDriven", "Model", "TensorFormula", "kinds"]
__all__ += image_driven.__all__


def kinds() -> dict[str, type[ImageDriven]]:
    """Return the models whose tensor follows the image, by the names that they have on the command line.

    Examples
    --------
    >>> from aniso import models
    >>> next(iter(models.kinds()))
    'coherence-enhancing'
    """
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower(): getattr(image_driven, name)
        for name in sorted(image_driven.__all__)
    }
