"""What the high-level functions chose, as data."""

from __future__ import annotations

from aniso.verbs.denoise import DenoisePlan
from aniso.verbs.enhance import EnhancePlan
from aniso.verbs.inpaint import InpaintPlan
from aniso.verbs.plan import Plan
from aniso.verbs.upsample import UpsamplePlan

__all__ = ["DenoisePlan", "EnhancePlan", "InpaintPlan", "Plan", "UpsamplePlan"]
