"""What tests of blocks share."""

import pytest
from dask.distributed import Client, LocalCluster

from aniso.blocks.stores import budget


@pytest.fixture(scope="module")
def client():
    """Workers in this process, where the calls of the operating system can be watched."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
        Client(local) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def scheduler():
    """The address of workers in this process."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def cut(monkeypatch):
    """Choose blocks and the limit of halos by hand."""

    def choose(block, limit):
        monkeypatch.setattr(budget, "block_and_limit", lambda *_: (block, limit))

    return choose


@pytest.fixture(scope="module")
def server():
    """The address of an S3 server."""
    from tests.blocks import s3  # loads moto

    with s3.s3_server() as address:
        yield address


@pytest.fixture
def given(server):
    """Its storage options."""
    from tests.blocks import s3

    return s3.options(server)


@pytest.fixture
def source(given, request):
    """The URL of an array."""
    from tests.blocks import s3

    url = f"s3://{s3.BUCKET}/{request.node.name}/in.zarr"
    s3.put_array(url, given, s3.IMAGE, chunks=(16, 16))
    return url


@pytest.fixture
def target(source):
    """A URL next to it."""
    return source.replace("in.zarr", "out.zarr")
