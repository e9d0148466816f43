"""Noise: models of it, and their estimate from an image."""

from aniso.noise.estimate import NoiseEstimate, estimate
from aniso.noise.models import Gaussian, NoiseModel, PoissonGaussian, Rician, Speckle

__all__ = ["Gaussian", "NoiseEstimate", "NoiseModel", "PoissonGaussian", "Rician", "Speckle", "estimate"]
