"""Filter a store on pods, with the Dask operator. Run it in the cluster, or where it can be reached."""

from cluster_run import arguments, run


def settings(workers: int) -> dict[str, object]:
    """Return the options of the cluster.

    The secret `object-store` has AWS_ACCESS_KEY_ID and the like; pods have them as environment variables.
    """
    return {
        "name": "aniso",
        "image": "registry.example.org/aniso:latest",  # with aniso[remote], in the versions of this script
        "n_workers": workers,
        "resources": {"requests": {"memory": "4Gi", "cpu": "1"}, "limits": {"memory": "4Gi", "cpu": "1"}},
        "env": [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": "object-store", "key": name}}}
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        ],
        "worker_command": "dask-worker --nthreads 1",
    }


if __name__ == "__main__":
    from dask_kubernetes.operator import KubeCluster

    given = arguments()
    run(KubeCluster(**settings(given.workers)), given)
