"""One stage of a learned diffusion: how responses of kernels decide about their weights, and the step."""

from __future__ import annotations

from typing import Any

from aniso.formulas.operations import log1p, logistic, maximum, minimum, tanh


def scaled_square(v: Any, unit: Any, most: Any) -> Any:
    """Return (v·unit)², where v·unit is limited to ±most so that squares stay finite."""
    scaled = minimum(maximum(v * unit, -most), most)
    return scaled * scaled


def energy(square: Any) -> Any:
    """Return e = log(1 + (c v/σ)²), given the mean square over the channels."""
    return log1p(square)


def response_weight(mixed: Any, gain: Any, bias: Any) -> Any:
    """Return w = 1/(1 + e^(−x)) in [0, 1] with x = a·mixed + b."""
    return logistic(gain * mixed + bias)


def learned_step(u: Any, rate: Any, f: Any, step: Any, back: Any) -> Any:
    """Return (1 − μ)(u − 2s·rate) + μ f, where rate is Kᵀ(w v)."""
    after = u - 2 * step * rate
    return after + back * (f - after)


def bounded(free: Any) -> Any:
    """Limit parameters smoothly to ±30; small ones hardly change."""
    return 30.0 * tanh(free / 30.0)


def level_polynomials(x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the first Chebyshev polynomials, of which parameters that depend on the noise level are sums."""
    return 1 + 0 * x, x, 2 * x * x - 1, (4 * x * x - 3) * x
