"""All targets, and how many of a thousand cases each has."""

from collections.abc import Callable
from functools import partial

from aniso.verbs.table import VERBS
from tests.fuzzing import array_calls, command_lines, file_calls, module_calls, parameter_calls
from tests.fuzzing.judging import Case, Verdict, judged
from tests.fuzzing.odd_values import Draw

TARGETS: dict[str, tuple[Callable[[Draw], Case], int]] = {
    "diffuse": (array_calls.diffuse, 160),
    "scale_space": (array_calls.scale_space, 60),
    **{name: (partial(array_calls.call_verb, verb=verb), 55) for name, verb in VERBS.items()},
    "dask": (array_calls.lazily, 40),
    "structure": (array_calls.structure, 50),
    "models": (parameter_calls.models, 50),
    "stencils": (parameter_calls.stencils, 40),
    "schemes": (parameter_calls.schemes, 30),
    "stability": (parameter_calls.bounds, 40),
    "tensor fields": (parameter_calls.tensor_fields, 50),
    "estimates": (parameter_calls.estimate, 40),
    "samples": (parameter_calls.sample, 40),
    "figures": (parameter_calls.figure, 10),
    "nn": (module_calls.modules, 60),
    "io.read": (file_calls.read, 70),
    "io.write": (file_calls.write, 30),
    "io.Picture": (file_calls.picture, 10),
    "command line": (command_lines.commands, 90),
    "zarr stores": (command_lines.stores, 20),
}


def case(name: str, seed: str) -> Case:
    """The case of this target and seed; always the same."""
    return TARGETS[name][0](Draw(f"{seed}/{name}"))


def verdict(name: str, seed: str) -> tuple[Case, Verdict]:
    """The case, and what became of it."""
    made = case(name, seed)
    return made, judged(made)
