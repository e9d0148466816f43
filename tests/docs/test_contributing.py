"""What CONTRIBUTING says about adding something works: its code is added to a copy of the package, and used.

A block begins with the file that it goes into: at the end, in a table, or before one.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from oracles import eigenvector_models

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
#: Rows of tables, which are not statements, are text.
_BLOCK = re.compile(r"^ *```(python|text)\n(.*?)^ *```$", re.M | re.S)
_HEAD = re.compile(r"# src/(\S+?)(?:, (in|before) (\w+))?\n")


def blocks():
    """File, place, table and text of every block."""
    for language, text in _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        text = textwrap.dedent(text)
        head = _HEAD.match(text)
        if head is None and language == "text":
            continue
        assert head, text
        yield (*head.groups(), text[head.end() :])


def add(path, place, table, text):
    """Add a block to a file; a new file holds nothing else."""
    if not path.exists():
        path.write_text(text, "utf-8")
        return
    content = path.read_text("utf-8")
    if place is None:
        path.write_text(f"{content}\n\n{text}", "utf-8")
        return
    found = re.search(rf"^{table}\b.*= [\[({{]\n", content, re.M)
    assert found, f"{table} is not in {path.name}"
    start = found.end() if place == "in" else found.start()
    path.write_text(content[:start] + text + "\n" + content[start:], "utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The folder of a package to which all blocks have been added."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src" / "aniso", folder / "aniso", ignore=shutil.ignore_patterns("__pycache__"))
    for name, *block in blocks():
        add(folder / name, *block)
    return folder


def run(copy, program):
    """Run a program with the changed package; `command` runs the command line."""
    start = """
        import sys
        import numpy as np
        import aniso
        from aniso.__main__ import main
        noisy = np.random.default_rng(0).normal(100, 20, (20, 24))
        def command(*words):
            sys.argv = ["aniso", *map(str, words)]
            try:
                main()
            except SystemExit as stop:
                assert not stop.code, stop.code
        def same(image, model, *engines, **options):
            truth = aniso.diffuse(image, model, 2.0, engine="reference", **options)
            for engine in engines:
                result = aniso.diffuse(image, model, 2.0, engine=engine, **options)
                np.testing.assert_allclose(result, truth, rtol=1e-6)
            return truth
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(start) + textwrap.dedent(program)],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_that_is_changed_is_there():
    names = {name for name, *_ in blocks()}
    assert len(names) == 8
    assert {name for name in names if not (ROOT / "src" / name).exists()} == {
        "aniso/engines/single.py",
        "aniso/io/formats/pgm.py",
    }


def test_a_model(copy):
    program = """
        volume = np.random.default_rng(0).normal(100, 20, (6, 7, 8))
        model = aniso.InverseStructure(contrast=5.0, sigma=0.5)
        image = same(noisy, model, "cpu", "torch")
        assert 5 < image.std() < 15
        assert same(volume, model, "cpu", "torch").std() < 15
        same(np.stack([noisy, noisy.T[:20, :20].repeat(2, 1)[:, :24]]), model, "cpu", channel_axis=0)
        command("diffuse", "--help")
    """
    shown = run(copy, program)
    assert "inverse-structure" in shown


def test_a_diffusivity(copy):
    program = """
        model = aniso.EdgeEnhancing(12.0, 0.5, "geman-mcclure")
        image = same(noisy, model, "cpu", "torch")
        own = aniso.EdgeEnhancing(12.0, 0.5, lambda r: (1 + r) ** -2)
        np.testing.assert_allclose(image, aniso.diffuse(noisy, own, 2.0, engine="reference"), rtol=1e-4)
        same(np.stack([noisy, noisy[::-1]]), model, "cpu", channel_axis=0)
        np.save("noisy.npy", noisy)
        command("diffuse", "noisy.npy", "--diffusivity", "geman-mcclure", "--time", 1, "-o", "smooth.npy")
        assert np.load("smooth.npy").std() < noisy.std()
    """
    run(copy, program)


def test_a_format(copy):
    program = """
        picture = noisy.clip(0, 255).astype(np.uint8)
        aniso.io.write("noisy.pgm", picture)
        np.testing.assert_array_equal(aniso.io.read("noisy.pgm").pixels, picture)
        command("diffuse", "noisy.pgm", "--time", 1, "-o", "smooth.pgm")
        assert aniso.io.read("smooth.pgm").format == "PGM"
        assert aniso.io.read("smooth.pgm").pixels.std() < picture.std()
        try:
            aniso.io.write("float.pgm", noisy)
        except aniso.io.FileError as error:
            assert "PGM files cannot hold float64 pixels" in str(error), error
        else:
            raise AssertionError("floats were written")
    """
    run(copy, program)


def test_an_engine(copy):
    program = """
        same(noisy, aniso.EdgeEnhancing(12.0), "single")
        np.save("image.npy", noisy)
        command("diffuse", "image.npy", "--time", 1, "--engine", "single", "-o", "single.npy")
        command("diffuse", "--help")
    """
    assert "single (the reference engine, rounded)" in " ".join(run(copy, program).replace("│", " ").split())


class TestTheTableOfDiffusivitiesIsFollowed:
    def test_by_the_oracles(self):
        from aniso.models import DIFFUSIVITIES

        assert set(eigenvector_models.DIFFUSIVITIES) == set(DIFFUSIVITIES)

    def test_by_the_laws(self):
        from aniso.models import DIFFUSIVITIES
        from tests.registry import MODELS

        used = {getattr(make((8, 8)), "diffusivity", None) for make in MODELS.values()}
        assert used >= set(DIFFUSIVITIES)

    def test_by_the_documentation(self):
        from aniso.models import DIFFUSIVITIES

        page = (ROOT / "docs" / "models.md").read_text("utf-8")
        assert set(re.findall(r'^\| `"([a-z-]+)"` \|', page, re.M)) == set(DIFFUSIVITIES)
