"""Bounds on the spectrum of A, which limit the time step, and the steps themselves.

A cell has the eigenvalues 0, λ1, λ2 and ζ. In volumes it has half of them (and of λ3, ζ_x, ζ_y, ζ_z and κ),
but a voxel lies in twice as many cells. Each ζ is that of the tensor's block in one plane, whose eigenvalues
do not exceed λ1 and λ2, and κ is their mean; so the bounds are the same. p1 ≥ p2 are the two largest of the
1/h².
"""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import maximum, sqrt


def largest_hourglass_weight(
    lambda1: Any, lambda2: Any, p1: float, p2: float, alpha: Any, gamma: Any, beta: float | None
) -> Any:
    """Return the largest ζ of all tensors with eigenvalues up to λ1 ≥ λ2, for a (α, γ) or (α, β) stencil.

    The floor under the root keeps derivatives finite at 0.
    """
    slack, ratio = 1 - 2 * alpha, p2 / p1
    oblique = slack * maximum(-gamma, 0.0) if beta is None else abs(beta)  # the part of |b| that adds to ζ/2
    reach = p1 * sqrt(maximum((slack * (1 - ratio)) ** 2 + 4 * oblique * oblique * ratio, 1e-36))
    return slack * (0.5 * (lambda1 + lambda2)) * (p1 + p2) + 0.5 * (lambda1 - lambda2) * reach


def largest_split_weight(lambda1: Any, lambda2: Any, alpha: Any) -> Any:
    """Return the largest eigenvalue of R, or κ, in a volume split into nine 1-D diffusions.

    R = (1 − 2α)(tr D·I − 2·diag D) + D is linear in D. Its largest eigenvalue is 1 + (1 − 2α)/3 at most for
    D = vvᵀ, and 2 − 2α for all other projections; a tensor is λ2 times one plus λ1 − λ2 times the former.
    """
    slack = 1 - 2 * alpha
    coupled = lambda2 * (1 + slack) + (lambda1 - lambda2) * (1 + slack / 3)
    return maximum(coupled, slack * (lambda1 + 2 * lambda2))


def spectral_bound(lambda1: Any, p1: float, largest_zeta: Any) -> Any:
    """Return 4·max(λ1·p1, ζ) ≥ ρ(A): a pixel lies in four cells, a voxel in eight with half the spectrum."""
    return 4 * maximum(largest_zeta, lambda1 * p1)


def explicit_step(u: Any, rate: Any, tau: Any) -> Any:
    """Return u + τAu, where rate is Au."""
    return u + tau * rate


def extrapolated_step(u: Any, previous: Any, rate: Any, weight: Any, tau: Any) -> Any:
    """Return w(u + τAu) + (1 − w)u⁻, where rate is Au and previous is u⁻."""
    # Not a sum of two products: compilers may fuse either one, and bits would depend on the width of blocks.
    return previous + weight * ((u - previous) + tau * rate)
