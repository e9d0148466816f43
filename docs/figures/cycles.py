"""Error over cost of explicit steps and FED cycles, for times from 1 to 300."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

# In explicit steps, from python -m benchmarks.steps: a cycle with one step, each further one of the first
# eight steps, and each of the others, which read stored tensors.
CYCLE, INNER, LATER = 1.0, 0.16, 0.23

image = aniso.samples.shapes(192).image.astype(np.float64)
model = aniso.EdgeEnhancing(contrast=3.0, sigma=1.0)
limit = aniso.stability.stable_step(model)


def cost(scheme, time):
    """The cost of a scheme, in explicit steps."""
    lengths = [len(cycle.steps) for cycle in scheme.plan(time, limit)]
    return sum(CYCLE + INNER * (min(n, 8) - 1) + LATER * max(n - 8, 0) for n in lengths)


def error(scheme, time, fine):
    """The root mean square difference from the fine solution, in grey values."""
    return np.sqrt(np.mean((aniso.diffuse(image, model, time, scheme=scheme) - fine) ** 2))


figure, panels = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained", sharey=True)
for panel, time in zip(panels.flat, (1.0, 3.0, 10.0, 30.0, 100.0, 300.0), strict=True):
    fine = aniso.diffuse(image, model, time, scheme=aniso.Explicit(step=0.025))
    explicit = [aniso.Explicit(step) for step in (0.45, 0.3, 0.2)]
    cycles = [aniso.FED(count) for count in (1, 2, 3, 5, 8, 12, 20, 32, 50) if count * limit <= time]
    for schemes, style, words in ((explicit, "s-C0", "explicit"), (cycles, "o-C3", "FED cycles")):
        costs = [cost(scheme, time) for scheme in schemes]
        panel.plot(costs, [error(scheme, time, fine) for scheme in schemes], style, label=words, markersize=5)
    for scheme in cycles:
        if scheme.cycles in (1, 5, 20):
            place = cost(scheme, time), error(scheme, time, fine)
            panel.annotate(f"{scheme.cycles}", place, (4, 4), textcoords="offset points", color="C3")
    panel.set(xscale="log", yscale="log", title=f"time {time:g}")
    low, high = panel.get_xlim()
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= tick <= high]
    ticks = ticks if time <= 10 else ticks[::2]
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.grid(alpha=0.3)
for panel in panels[1]:
    panel.set_xlabel("cost in explicit steps")
for panel in panels[:, 0]:
    panel.set_ylabel("error in grey values")
panels[0, 0].legend()
plt.show()
