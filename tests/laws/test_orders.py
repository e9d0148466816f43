"""Orders of consistency and convergence: log–log slopes against manufactured solutions."""

import numpy as np
import pytest
from scipy.sparse import eye_array
from scipy.sparse.linalg import spsolve

import aniso
from aniso.stencil import matrix
from oracles.manufactured import MIRRORED, TILTED, TURNING, samples
from tests.laws.problems import Tensor

SIZES = (32, 64)


class SmoothDelta:
    """A δ that belongs to no (α, γ), chosen as a smooth function of the place."""

    def __call__(self, x, y):
        return aniso.FreeStencil(0.5 + 0.4 * np.sin(3 * x + y))

    def __str__(self):
        return "FreeStencil"


SMOOTH_MEMBERS = [
    aniso.DeltaStencil(0.0, 0.0),
    aniso.DeltaStencil(1 / 3, 0.0),
    aniso.DeltaStencil(0.5, 0.0),
    aniso.DeltaStencil(0.1, beta=0.8),
    SmoothDelta(),
]
KINKED_MEMBERS = [aniso.DeltaStencil(0.0, 1.0), aniso.DeltaStencil(0.0, -1.0)]
MEMBERS = [*SMOOTH_MEMBERS, *KINKED_MEMBERS, aniso.DeltaStencil(0.4, 1.0)]

SQUARE, OBLONG = 1, 2  # columns per row: with OBLONG pixels are half as wide as they are high


def without_mixed_entry_on_the_ring(a, b, c):
    inside = np.pad(np.ones(np.subtract(b.shape, 2)), 1)
    return a, b * inside, c


class Experiment:
    """Truncation and solution errors on grids of growing size."""

    def __init__(self, solution, member, *, aspect=SQUARE, boundary="mirror", treatment=None):
        truncation, inside, error = [], [], []
        for size in SIZES:
            shape = size, aspect * size
            centres, corners = samples(shape)
            tensor: Tensor = solution.tensor(*corners)
            if treatment is not None:
                tensor = treatment(*tensor)
            stencil = member(*corners) if callable(member) else member
            spacing = 1 / shape[0], 1 / shape[1]
            generator = matrix(*tensor, stencil, spacing, boundary)
            u, divergence = solution.u(*centres), solution.divergence(*centres)
            residual = (generator @ u.ravel()).reshape(u.shape) - divergence
            truncation.append(abs(residual).max())
            inside.append(abs(residual[1:-1, 1:-1]).max())
            identity = eye_array(u.size)
            computed = spsolve((identity - generator).tocsc(), (u - divergence).ravel())
            error.append(abs(computed - u.ravel()).max())
        self.truncation_order = slope(truncation)
        self.inside_order = slope(inside)
        self.order = slope(error)
        self.error = error[-1]


def slope(errors):
    """The order that the two grids show, one twice as fine as the other."""
    coarse, fine = errors
    return np.log2(coarse / fine)


@pytest.mark.parametrize("solution", [MIRRORED, TURNING, TILTED])
def test_the_manufactured_solutions_are_solutions(solution):
    solution.check()


@pytest.mark.parametrize("aspect", [SQUARE, OBLONG])
@pytest.mark.parametrize("member", SMOOTH_MEMBERS, ids=str)
@pytest.mark.parametrize("solution", [MIRRORED, TURNING], ids=["b>0", "b turns"])
def test_smooth_stencils_are_consistent_of_order_two_up_to_the_boundary(solution, member, aspect):
    experiment = Experiment(solution, member, aspect=aspect)
    assert experiment.truncation_order > 1.9
    assert experiment.order > 1.9


@pytest.mark.parametrize("aspect", [SQUARE, OBLONG])
@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_solutions_converge_with_order_two_where_b_reaches_the_boundary(member, aspect):
    """The collapse of the ghost cells keeps the order, though the outer pixels have order one."""
    experiment = Experiment(TILTED, member, aspect=aspect)
    assert experiment.order > 1.9
    assert experiment.truncation_order > 0.5
    assert experiment.inside_order > 1.7


@pytest.mark.parametrize("member", KINKED_MEMBERS, ids=str)
def test_a_kink_of_delta_costs_the_truncation_order_but_not_that_of_the_solution(member):
    """|b| has a kink where b changes its sign obliquely to the grid."""
    experiment = Experiment(TURNING, member)
    assert 0.8 < experiment.truncation_order < 1.6
    assert experiment.order > 1.9


@pytest.mark.parametrize("member", [MEMBERS[0], MEMBERS[2], MEMBERS[-1]], ids=str)
def test_collapsing_beats_zeroing_the_mixed_entry(member):
    collapsed = Experiment(TILTED, member)
    zeroed = Experiment(TILTED, member, treatment=without_mixed_entry_on_the_ring)
    assert zeroed.order < 1.5
    assert zeroed.truncation_order < 0.3
    assert collapsed.error < 0.1 * zeroed.error


@pytest.mark.parametrize("solution", [MIRRORED, TILTED], ids=["mirrored", "tilted"])
@pytest.mark.parametrize("member", [MEMBERS[0], MEMBERS[2], MEMBERS[-1]], ids=str)
def test_the_natural_boundary_is_not_consistent(solution, member):
    natural = Experiment(solution, member, boundary="natural")
    assert natural.truncation_order < 0.3
    assert 0.7 < natural.order < 1.5
    assert Experiment(solution, member).error < 0.1 * natural.error
