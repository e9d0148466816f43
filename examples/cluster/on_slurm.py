"""Filter a store on jobs of SLURM. Run it on a node that jobs can reach, such as the login node."""

from cluster_run import arguments, run


def settings() -> dict[str, object]:
    """Return the options of a job: one job is one worker with one thread, which computes one block at a time.

    Jobs inherit environment variables, and so the credentials of the object store.
    """
    return {
        "cores": 1,
        "processes": 1,
        "memory": "4GB",
        "walltime": "02:00:00",
        "queue": "compute",  # the partition of your cluster
        "job_extra_directives": ["--export=ALL"],
        "worker_extra_args": ["--lifetime", "110m", "--lifetime-stagger", "5m"],
    }


if __name__ == "__main__":
    from dask_jobqueue import SLURMCluster

    given = arguments()
    cluster = SLURMCluster(**settings())
    cluster.scale(jobs=given.workers)
    run(cluster, given)
