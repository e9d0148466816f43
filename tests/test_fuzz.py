"""A slice of `python -m tests.fuzzing`: odd calls are answered, or refused in a sentence."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzzing.judging import Case, judged
from tests.fuzzing.targets import TARGETS, case, verdict

# Number of cases of each target, fewer for slow ones.
_FEW = ("figures", "command line", "zarr stores", "dask", "enhance", "denoise")


@pytest.mark.parametrize("name", TARGETS)
def test_odd_calls(name):
    @settings(
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=6 if name in _FEW else 15,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32))
    def holds(seed):
        made, found = verdict(name, str(seed))
        assert found.kind != "failed", f"{made.text}\n{found.fault}"

    holds()


def test_a_case_is_always_the_same():
    for name in TARGETS:
        assert case(name, "5").text.split(" at 0x")[0] == case(name, "5").text.split(" at 0x")[0]


class TestTheJudge:
    """It sees what it is there to see."""

    @pytest.mark.parametrize(
        ("call", "kind"),
        [
            (lambda: 1, "accepted"),
            (lambda: _raised(ValueError("this is a whole sentence.")), "failed"),  # not raised by the package
            (lambda: 1 / 0, "failed"),
            (lambda: [][1], "failed"),
            (lambda: _refused_by_the_package(), "refused"),
            (lambda: _slipped_in_the_package(), "failed"),
            (lambda: __import__("warnings").warn("odd", stacklevel=1), "failed"),
        ],
    )
    def test_errors(self, call, kind):
        assert judged(Case(call, "")).kind == kind

    def test_a_modified_input(self):
        import numpy as np

        array = np.zeros(3)
        assert judged(Case(lambda: array.fill(1), "", inputs=[array])).fault == "an input was modified"

    def test_a_call_that_never_ends(self, monkeypatch):
        from tests.fuzzing import judging

        def forever():
            while True:
                pass

        monkeypatch.setattr(judging, "PATIENCE", 0.2)
        assert "still running" in judged(Case(forever, "")).fault


def _raised(error):
    raise error


def _refused_by_the_package():
    import aniso

    aniso.FED(0)


def _slipped_in_the_package():
    from aniso.formulas.gaussian import gaussian_radius

    gaussian_radius("x")  # type: ignore[arg-type]
