"""Without PyTorch everything works that does not need it, and the rest says how to install it."""

import subprocess
import sys

import pytest


class TestWithoutPyTorch:
    """As if it were not installed: the finder of files does not find it."""

    HIDE = """
import importlib.machinery, sys

class Blind:
    @staticmethod
    def find_spec(name, path=None, target=None):
        hidden = name.split(".")[0] == "torch"
        return None if hidden else importlib.machinery.PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Blind if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
"""

    def output(self, program):
        done = subprocess.run([sys.executable, "-c", self.HIDE + program], capture_output=True, text=True)
        return done.stdout + done.stderr.strip().split("\n")[-1]

    @pytest.mark.parametrize(
        "program",
        [
            "import aniso.nn",
            "import aniso; aniso.nn.DiffusionBlock",
            "import aniso, numpy; aniso.diffuse(numpy.eye(4), aniso.Homogeneous(), 1.0, engine='torch')",
        ],
    )
    def test_what_needs_it_says_how_to_install_it(self, program):
        answer = self.output(program)
        assert answer.startswith("ImportError")
        assert "needs PyTorch" in answer or "needs the package torch" in answer
        assert 'pip install "aniso[torch]"' in answer

    def test_the_rest_works(self):
        program = (
            "import aniso, numpy; u = numpy.eye(4); "
            "print(aniso.diffuse(u, aniso.Homogeneous(), 1.0, engine='reference').sum().round(9))"
        )
        assert self.output(program).strip() == "4.0"

    def test_nothing_loads_it_unasked(self):
        program = (
            "import sys, aniso, numpy; before = {'torch', 'numba'} & set(sys.modules); "
            "aniso.diffuse(numpy.eye(4), aniso.EdgeEnhancing(), 1.0, engine='reference'); "
            "print(before, 'torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set() False"
