"""Filter a store on machines in the cloud, with Coiled, which copies the packages of this environment."""

from cluster_run import arguments, run


def settings(workers: int) -> dict[str, object]:
    """Return the options of the cluster. Coiled gives the workers credentials for your object store."""
    return {
        "name": "aniso",
        "n_workers": workers,
        "worker_memory": "8 GiB",
        "worker_options": {"nthreads": 1},
        "region": "eu-central-1",  # that of the bucket: data that leave a region are slow and cost money
        "use_best_zone": True,
    }


if __name__ == "__main__":
    import coiled

    given = arguments()
    run(coiled.Cluster(**settings(given.workers)), given)
