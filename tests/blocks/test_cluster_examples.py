"""The scripts of examples/cluster, as far as they can be run without a cluster."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aniso
from tests.blocks import s3
from tests.processes import PATIENCE

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
IMAGE = aniso.samples.shapes(64, noise=20.0).image.astype(np.float32)


def loaded(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_on_this_machine(tmp_path):
    with s3.s3_server() as address:
        given, source = s3.options(address), f"s3://{s3.BUCKET}/in.zarr"
        s3.put_array(source, given, IMAGE, chunks=(32, 32))
        environment = {**os.environ, **s3.environment(address), "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [FOLDER / "on_this_machine.py", source, f"s3://{s3.BUCKET}/out.zarr", "--workers", "1"]
        answer = subprocess.run(
            [sys.executable, *map(str, words)], env=environment, cwd=tmp_path, timeout=PATIENCE,
            capture_output=True, text=True,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        assert " of 4 blocks" in answer.stderr or " of 1 blocks" in answer.stderr, answer.stderr
        np.testing.assert_array_equal(s3.get_array(f"s3://{s3.BUCKET}/out.zarr", given), aniso.denoise(IMAGE))


@pytest.fixture
def interrupts():
    """Keep the handler of SIGINT, which importing dask-jobqueue replaces for the whole process."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore")  # of Dask, about ports and the future
@pytest.mark.usefixtures("interrupts")
def test_the_job_of_slurm(monkeypatch):
    from dask_jobqueue.slurm import SLURMCluster

    with SLURMCluster(**loaded("on_slurm", monkeypatch).settings(), scheduler_options={"port": 0}) as cluster:
        script = cluster.job_script()
    for line in ("#SBATCH -p compute", "#SBATCH --mem=4G", "#SBATCH --export=ALL", "#SBATCH -t 02:00:00"):
        assert line in script
    assert "--nthreads 1" in script


@pytest.mark.parametrize("name", ["on_kubernetes", "on_coiled"])
def test_options_of_the_others(monkeypatch, name):
    """The packages are not among those of the tests: workers have one thread and the given number."""
    found = loaded(name, monkeypatch).settings(7)
    assert found["n_workers"] == 7
    assert "nthreads" in str(found)
    assert "SECRET" not in str(found).replace("AWS_SECRET_ACCESS_KEY", "")
