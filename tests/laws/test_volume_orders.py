"""Orders of consistency and convergence in volumes, up to the boundary."""

import numpy as np
import pytest
from scipy.sparse import eye_array
from scipy.sparse.linalg import cg

import aniso
from aniso.stencil import SplitStencil
from aniso.volumes import matrix
from oracles.manufactured_volumes import Smooth, Tilted, samples
from tests.laws.test_orders import slope

SIZES = (12, 24)
MEMBERS = [
    aniso.DeltaStencil(0.0, 0.0),
    aniso.DeltaStencil(1 / 3, 0.0),
    aniso.DeltaStencil(0.5, 0.0),
    aniso.DeltaStencil(0.4, 1.0),
    SplitStencil(0.0),
    SplitStencil(0.4),
]


class Experiment:
    """Truncation and solution errors on grids of growing size; `aspect` voxels more along x."""

    def __init__(self, solution, member, *, aspect=1.0, zeroed=False):
        truncation, error = [], []
        for size in SIZES:
            shape = size, size, int(aspect * size)
            centres, corners = samples(shape)
            tensor = np.array(solution.tensor(*corners))
            if zeroed:
                tensor[0, 2, [0, -1]] = tensor[2, 0, [0, -1]] = 0.0
            generator = matrix(tensor, member, tuple(1 / n for n in shape))
            u, divergence = solution.u(*centres), solution.divergence(*centres)
            truncation.append(abs(generator @ u.ravel() - divergence.ravel()).max())
            system = eye_array(u.size) - generator
            computed, failed = cg(system, (u - divergence).ravel(), rtol=1e-10, maxiter=2000)
            assert not failed
            error.append(abs(computed - u.ravel()).max())
        self.truncation_order, self.order, self.error = slope(truncation), slope(error), error[-1]


@pytest.mark.parametrize("solution", [Smooth(), Tilted()], ids=["smooth", "tilted"])
def test_the_manufactured_solutions_are_solutions(solution):
    solution.check()


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_order_two_up_to_the_boundary(member):
    """Also for γ ≠ 0: the mixed entries of this tensor keep their signs."""
    experiment = Experiment(Smooth(), member)
    assert experiment.truncation_order > 1.85
    assert experiment.order > 1.9


def test_order_two_on_unequal_spacing():
    assert Experiment(Smooth(), aniso.DeltaStencil(), aspect=1.5).order > 1.9


@pytest.mark.parametrize("member", [MEMBERS[0], MEMBERS[3], MEMBERS[5]], ids=str)
def test_solutions_converge_with_order_two_where_mixed_entries_reach_the_boundary(member):
    """The collapse of the ghost cells keeps the order; setting the mixed entries to 0 there does not."""
    collapsed = Experiment(Tilted(), member)
    assert collapsed.order > 1.85
    zeroed = Experiment(Tilted(), member, zeroed=True)
    assert zeroed.order < 1.5
    assert collapsed.error < 0.35 * zeroed.error
