"""What tests of blocks share."""

import pytest
from dask.distributed import Client, LocalCluster


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
