"""Tensor-driven anisotropic diffusion: smooth images along their structures, not across them."""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aniso import models as models
    from aniso import nn as nn
    from aniso import samples as samples
    from aniso import schemes as schemes
    from aniso import stability as stability
    from aniso import stencil as stencil
    from aniso.evolve import diffuse as diffuse
    from aniso.evolve import scale_space as scale_space
    from aniso.inpaint import inpaint as inpaint
    from aniso.models import CoherenceEnhancing as CoherenceEnhancing
    from aniso.models import EdgeContinuing as EdgeContinuing
    from aniso.models import EdgeEnhancing as EdgeEnhancing
    from aniso.models import FixedTensor as FixedTensor
    from aniso.models import Homogeneous as Homogeneous
    from aniso.models import PeronaMalik as PeronaMalik
    from aniso.schemes import FED as FED
    from aniso.schemes import FSI as FSI
    from aniso.schemes import Explicit as Explicit
    from aniso.stencil import DeltaStencil as DeltaStencil
    from aniso.stencil import FreeStencil as FreeStencil
    from aniso.upsample import upsample as upsample

    __version__: str

# Public name → module that holds it. Nothing is imported before it is asked for.
_HOMES = {
    "CoherenceEnhancing": "models",
    "DeltaStencil": "stencil",
    "EdgeContinuing": "models",
    "EdgeEnhancing": "models",
    "Explicit": "schemes",
    "FED": "schemes",
    "FSI": "schemes",
    "FixedTensor": "models",
    "FreeStencil": "stencil",
    "Homogeneous": "models",
    "PeronaMalik": "models",
    "diffuse": "evolve",
    "inpaint": "inpaint",
    "scale_space": "evolve",
    "upsample": "upsample",
}
_MODULES = ("models", "nn", "samples", "schemes", "stability", "stencil")

__all__ = [
    "FED",
    "FSI",
    "CoherenceEnhancing",
    "DeltaStencil",
    "EdgeContinuing",
    "EdgeEnhancing",
    "Explicit",
    "FixedTensor",
    "FreeStencil",
    "Homogeneous",
    "PeronaMalik",
    "diffuse",
    "inpaint",
    "models",
    "nn",
    "samples",
    "scale_space",
    "schemes",
    "stability",
    "stencil",
    "upsample",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = importlib.import_module("importlib.metadata").version("aniso")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"aniso.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"aniso.{name}")
    else:
        raise AttributeError(f"module 'aniso' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


class _Package(types.ModuleType):
    """A verb and its module share a name: whoever imports the module must not lose the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, types.ModuleType) and _HOMES.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
