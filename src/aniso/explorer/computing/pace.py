"""The computing time of previews: measured, so that each is as fine as the time budget allows."""

from __future__ import annotations

from aniso.explorer.choosing.calls import Call

#: Seconds for computing a preview; drawing and sending it come on top.
BUDGET = 0.07
_LEAST_PIXELS = 96**2


class Pace:
    """Seconds per pixel and step of each kind of call: from the table of verbs, then measured."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def affordable(self, call: Call, factor: int = 1) -> float:
        """Return the number of pixels, `factor` times coarser, that can be computed within the budget.

        It is large enough for something to be seen.
        """
        seconds = self._seconds.get(call.kind, call.verb.seconds)
        return max(BUDGET / (seconds * call.steps(factor)), _LEAST_PIXELS)

    def record(self, call: Call, pixels: int, seconds: float, factor: int = 1) -> None:
        """Learn from a computation; the first one of its kind may have included compilation."""
        new, known = seconds / pixels / call.steps(factor), self._seconds.get(call.kind)
        limit = 3 * call.verb.seconds
        self._seconds[call.kind] = min(new, limit) if known is None else 0.5 * (known + new)
