"""Tensor-driven anisotropic diffusion: smooth images along structures, not across edges."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in typing, whose import would be most of the time that this one takes
if TYPE_CHECKING:
    from typing import Any

    from aniso import estimates as estimates
    from aniso import io as io
    from aniso import models as models
    from aniso import nn as nn
    from aniso import noise as noise
    from aniso import samples as samples
    from aniso import schemes as schemes
    from aniso import stability as stability
    from aniso import stencil as stencil
    from aniso import volumes as volumes
    from aniso.blocks.stores.filtering import filter_store as filter_store
    from aniso.evolve import diffuse as diffuse
    from aniso.evolve import scale_space as scale_space
    from aniso.explorer.inline import explore as explore
    from aniso.figures import scale_space_figure as scale_space_figure
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
    from aniso.structure import coherence as coherence
    from aniso.structure import diffusion_tensor as diffusion_tensor
    from aniso.structure import orientation as orientation
    from aniso.structure import structure_tensor as structure_tensor
    from aniso.verbs import plans as plans
    from aniso.verbs.denoise import denoise as denoise
    from aniso.verbs.enhance import enhance as enhance
    from aniso.verbs.inpaint import inpaint as inpaint
    from aniso.verbs.plan import Plan as Plan
    from aniso.verbs.upsample import upsample as upsample

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
    "Plan": "verbs.plan",
    "coherence": "structure",
    "denoise": "verbs.denoise",
    "diffuse": "evolve",
    "diffusion_tensor": "structure",
    "enhance": "verbs.enhance",
    "explore": "explorer.inline",
    "filter_store": "blocks.stores.filtering",
    "inpaint": "verbs.inpaint",
    "orientation": "structure",
    "scale_space": "evolve",
    "scale_space_figure": "figures",
    "structure_tensor": "structure",
    "upsample": "verbs.upsample",
}
_NAMES = ("estimates", "io", "models", "nn", "noise", "samples", "schemes", "stability", "stencil", "volumes")
_MODULES = {name: name for name in _NAMES} | {"plans": "verbs.plans"}

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = importlib.import_module("importlib.metadata").version("aniso")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"aniso.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"aniso.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'aniso' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
