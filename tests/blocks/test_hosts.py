"""Clusters whose processes are killed or cut off; `python -m tests.blocks.hosts 30` kills more of them."""

import contextlib
import os
import shutil
import subprocess
import sys
from functools import partial

import pytest

from tests.blocks import hosts, s3
from tests.processes import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes"),
]


def test_a_run_a_worker_and_the_scheduler_are_killed():
    assert hosts.kill_at_random(3, seed=1) == {"run": 1, "worker": 1, "scheduler": 1}


def _call(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


def _reason():
    """Why there can be no network namespaces, if so."""
    if shutil.which("ip") is None:
        return "there is no command ip (iproute2)"
    tried = _call("ip", "netns", "add", f"aniso-try-{os.getpid()}", check=False)
    if tried.returncode != 0:
        return f"network namespaces are not permitted: {tried.stderr.strip()}"
    _call("ip", "netns", "delete", f"aniso-try-{os.getpid()}")
    return None


@contextlib.contextmanager
def three_hosts():
    """Yield the address of this host, the names of three namespaces, the address of the first of them, and
    functions that cut the network of the last one and restore it.
    """
    mark = f"{os.getpid() % 10000:04}"
    bridge, net = f"an{mark}", f"10.{77 + os.getpid() % 100}.{os.getpid() % 250}"
    names = {role: f"aniso-{role}-{mark}" for role in ("scheduler", "worker0", "worker1")}
    try:
        _call("ip", "link", "add", bridge, "type", "bridge")
        _call("ip", "address", "add", f"{net}.1/24", "dev", bridge)
        _call("ip", "link", "set", bridge, "up")
        for number, name in enumerate(names.values(), 2):
            outer, inner = f"an{mark}v{number}", "eth0"
            _call("ip", "netns", "add", name)
            _call("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
            _call("ip", "link", "set", outer, "master", bridge, "up")
            _call("ip", "-n", name, "address", "add", f"{net}.{number}/24", "dev", inner)
            _call("ip", "-n", name, "link", "set", inner, "up")
            _call("ip", "-n", name, "link", "set", "lo", "up")
        link = "ip", "link", "set", f"an{mark}v4"
        yield f"{net}.1", names, f"{net}.2", partial(_call, *link, "down"), partial(_call, *link, "up")
    finally:
        for name in names.values():
            _call("ip", "netns", "delete", name, check=False)
        _call("ip", "link", "delete", bridge, check=False)


def test_the_network_of_a_worker_is_cut(tmp_path):
    """A scheduler and two workers on hosts of their own: the run goes on with the worker that is left."""
    if (reason := _reason()) is not None:
        pytest.skip(reason)
    with three_hosts() as (here, names, scheduler, cut, restore), s3.s3_server(here) as address:
        given = s3.options(address)
        s3.put_array(hosts.SOURCE, given, hosts.IMAGE, chunks=(16, 16))
        prefix = {role: ("ip", "netns", "exec", name) for role, name in names.items()}
        with hosts.Hosts(address, tmp_path, prefix, scheduler, hosts.SOON).all() as cluster:
            cluster.start_cluster()
            for _ in range(10):
                cluster.start_run()
                run = cluster.processes["run"]
                hosts.wait(lambda run=run: (cluster.reported() or 0) > 0.2 or run.poll() is not None, cluster)
                if run.poll() is None:
                    cut()
                    if cluster.reported() < 1:
                        break
                    restore()
                assert run.wait(PATIENCE) == 0, cluster.log()
                s3.remove(hosts.TARGET, given)  # it was faster: begin again
            else:
                pytest.fail("the run was always faster than this test")
            assert run.wait(PATIENCE) == 0, cluster.log()
        assert hosts.is_there(given)
