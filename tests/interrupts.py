"""Real interrupts at random moments of the cpu engine: nothing crashes, and later calls give the same bytes.

    python -m tests.interrupts --count 2000 --seed 0

Child processes filter images and volumes on two to eight threads. Each call gets one or two SIGINTs, and the
child goes on after the KeyboardInterrupt: its threads must end, and an undisturbed call must give the bytes
of a process that was never interrupted. Every child begins with kernels that are not yet loaded; with
--cold they are not yet compiled either, and the bytes are not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

import aniso

EDGES = aniso.EdgeEnhancing(contrast=12.0)
LINES = aniso.CoherenceEnhancing(contrast=8.0, rho=2.0)
#: Interrupts per child process.
PER_CHILD = 100
#: How long a child may be silent, in seconds: it may have to compile.
PATIENCE = 120.0
#: How long threads may take to end after a call, in seconds.
GRACE = 10.0
#: Calls that take longer than this to raise the exception, in seconds, are listed. Busy machines are slow.
LATE = 0.5


def picture(*shape: int) -> Any:
    """An image with edges and noise, always the same."""
    noise = np.random.default_rng(0).normal(0, 10, shape)
    return (noise + 100 * (np.indices(shape).sum(0) // 9 % 2)).astype(np.float32)


def snapshots(threads: int) -> Any:
    """A scale space that is given up before its end."""
    way = aniso.scale_space(picture(400, 400), EDGES, [1.0, 3.0, 1e5], threads=threads)
    try:
        next(way)
        return next(way)[1]
    finally:
        way.close()


#: All ways through the engine, as functions of the number of threads.
CALLS: dict[str, Callable[[int], Any]] = {
    "fused": lambda threads: aniso.diffuse(picture(400, 400), EDGES, 4.0, threads=threads),
    "stored": lambda threads: aniso.diffuse(picture(400, 400), LINES, 2.0, threads=threads),
    "fixed": lambda threads: aniso.diffuse(
        picture(400, 400), EDGES, 2.0, fixed=picture(400, 400) > 80, threads=threads
    ),
    "colour FSI": lambda threads: aniso.diffuse(
        picture(3, 200, 300), EDGES, 60.0, scheme=aniso.FSI(cycles=2), channel_axis=0, threads=threads
    ),
    "snapshots": snapshots,
    "volume": lambda threads: aniso.diffuse(picture(40, 64, 80), EDGES, 0.6, threads=threads),
    "stored volume": lambda threads: aniso.diffuse(picture(40, 48, 64), LINES, 0.3, threads=threads),
}


def digest(result: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:16]


def thread_count() -> int:
    """All threads of this process, those that Python does not list included where the system says so."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


# The child -------------------------------------------------------------------------------------------


class Target:
    """A SIGINT raises KeyboardInterrupt while `armed`."""

    def __init__(self) -> None:
        self.armed = self.hit = False
        signal.signal(signal.SIGINT, self._arrived)

    def _arrived(self, *_: object) -> None:
        if self.armed:
            self.hit = True
            raise KeyboardInterrupt

    def disturbed(self, call: Callable[[], Any]) -> float:
        """Carry out the call until an interrupt arrives; returns when that came out. At most two arrive."""
        came_out = 0.0
        try:
            try:
                self.hit, self.armed = False, True
                say("go")
                call()
                # Python itself ignores what is raised in the callback of a weak reference.
                while not self.hit:
                    time.sleep(0.01)
                came_out = time.monotonic()
            except KeyboardInterrupt:
                came_out = time.monotonic()
            self.armed = False
        except KeyboardInterrupt:
            came_out = came_out or time.monotonic()
        self.armed = False
        return came_out


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def child() -> None:
    """Read `name threads`, be interrupted, check, answer; until the input ends."""
    faulthandler.enable()
    target = Target()
    alone = thread_count()
    for line in sys.stdin:
        name, threads = line.rsplit(maxsplit=1)
        call = CALLS[name]
        came_out = target.disturbed(lambda call=call, threads=threads: call(int(threads)))  # type: ignore[misc]
        sys.stdin.readline()  # all interrupts are sent
        since = time.monotonic()
        while (left := thread_count() - alone) > 0 and time.monotonic() < since + GRACE:
            time.sleep(0.001)
        ended = time.monotonic() - since
        alone += left  # said once
        began = time.monotonic()
        found = digest(call(int(threads)))
        say(came_out, left, ended, found, time.monotonic() - began)


# The parent ------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was found."""

    sent: int = 0
    latencies: list[float] = field(default_factory=list)
    endings: list[float] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def table(self) -> str:
        lines = [f"{self.sent} calls interrupted, {len(self.faults)} faults"]
        for name, values in (("signal to exception", self.latencies), ("threads ended after", self.endings)):
            if values:
                at = " ".join(f"{1e3 * np.quantile(values, q):8.1f}" for q in (0.5, 0.9, 0.99, 1.0))
                lines.append(f"{name:20} median, 90 %, 99 %, longest, in ms: {at}")
        return "\n".join([*lines, *self.late, *self.faults])


def lines_of(stream: IO[bytes]) -> Iterator[str]:
    """Lines as they come; ends with the stream, or when nothing came for too long."""
    rest = b""
    while select.select([stream], [], [], PATIENCE)[0]:
        more = os.read(stream.fileno(), 65536)
        if not more:
            return
        *whole, rest = (rest + more).split(b"\n")
        yield from (line.decode() for line in whole)


def visit(
    seed: int, count: int, expected: dict[str, str], tally: Tally, names: list[str], folder: str | None
) -> None:
    """Interrupt one child this number of times; a fault ends it."""
    chance = random.Random(seed)
    durations: dict[str, float] = {}
    # BLAS would start threads of its own, which stay.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | ({"ANISO_CACHE_DIR": folder} if folder else {})
    with (
        tempfile.TemporaryFile() as noise,
        subprocess.Popen(
            [sys.executable, "-m", "tests.interrupts", "--child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            bufsize=0,
            env=environment,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        answers = lines_of(process.stdout)
        number, name, threads = 0, "", 0
        try:
            for number in range(count):
                name, threads = chance.choice(names), chance.randint(2, 8)
                process.stdin.write(f"{name} {threads}\n".encode())
                if next(answers) != "go":
                    raise ValueError("the child is out of step")
                usual = durations.get(name, 8.0 if folder else 1.0)
                time.sleep(chance.uniform(0, 1.2 * usual))
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                if chance.random() < 0.2:
                    time.sleep(chance.expovariate(500))
                    process.send_signal(signal.SIGINT)
                process.stdin.write(b"sent\n")
                tally.sent += 1
                came_out, left, ended, found, duration = next(answers).split()
                durations[name] = float(duration)
                tally.latencies.append(float(came_out) - sent)
                tally.endings.append(float(ended))
                place = f"seed {seed}, interrupt {number}, {name} on {threads} threads"
                if tally.latencies[-1] > LATE:
                    tally.late.append(f"{place}: raised after {tally.latencies[-1]:.2f} s")
                if int(left):
                    tally.faults.append(f"{place}: {left} threads left")
                if found != expected[name] and not folder:
                    tally.faults.append(f"{place}: other bytes in a later call")
        except (StopIteration, BrokenPipeError):
            silent = process.poll() is None and not select.select([process.stdout], [], [], 0.5)[0]
            if silent:
                process.send_signal(signal.SIGABRT)  # the child tells where it hangs
            code = process.wait(10)
            noise.seek(0)
            tally.faults.append(
                f"seed {seed}, interrupt {number}, {name} on {threads} threads: "
                f"{'silence' if silent else f'ended with {code}'}\n{noise.read().decode()[-3000:]}"
            )
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def undisturbed(names: list[str]) -> dict[str, str]:
    """The digest of each result, from a process of its own."""
    arguments = [sys.executable, "-m", "tests.interrupts", "--digests", *names]
    answer = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(names, answer.stdout.split(), strict=True))


def interrupt(
    count: int, seed: int, names: list[str] | None = None, *, cold: bool = False, tell: Any = None
) -> Tally:
    """Interrupt calls this number of times; return the tally."""
    names = names or list(CALLS)
    # Twice: a kernel that was just compiled may round in another way than the same kernel from the cache.
    expected = [undisturbed(names) for _ in range(2)][-1]
    tally = Tally()
    per_child = 4 if cold else PER_CHILD
    for start in range(0, count, per_child):
        with tempfile.TemporaryDirectory() as folder:
            place = folder if cold else None
            visit(seed + start, min(per_child, count - start), expected, tally, names, place)
        if tell is not None:
            tell(f"{tally.sent} interrupts, {len(tally.faults)} faults", *tally.faults[-1:], flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interrupts", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", nargs="*", choices=CALLS, help="only these")
    parser.add_argument("--cold", action="store_true", help="with kernels that are not yet compiled")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--digests", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.digests:
        print(*(digest(CALLS[name](2)) for name in given.digests))
        return 0
    if given.child:
        child()
        return 0
    tally = interrupt(given.count, given.seed, given.calls, cold=given.cold, tell=print)
    print(tally.table())
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
