"""Filter a store on processes of this machine."""

from cluster_run import arguments, run
from dask.distributed import LocalCluster


def settings(workers: int) -> dict[str, object]:
    """Return the options of the cluster; connections of this machine only."""
    return {
        "n_workers": workers,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
    }


if __name__ == "__main__":
    given = arguments()
    run(LocalCluster(**settings(given.workers)), given)
