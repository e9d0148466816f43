"""Compiled kernels on disk: damaged files, full disks, pruning, and threads."""

import errno
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from aniso.engines.cpu import cache
from aniso.engines.cpu.private_folder import make_private
from tests.engines.kernel_files import ON_UNIX, RUN, SOMEBODY_ELSE, files, root, run, unix

pytestmark = pytest.mark.slow


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in files(folder)}


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def put_a_folder_in_its_place(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "cut off in its head": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "something else": lambda path: path.write_bytes(os.urandom(5000)),
    "one bit": change_a_byte,
}


class TestBits:
    def test_a_kernel_rounds_alike_when_it_was_just_compiled_and_when_it_was_loaded(self, tmp_path):
        script = """
            import hashlib, numpy as np, aniso
            rng = np.random.default_rng(0)
            schemes = (aniso.FED(2), aniso.FSI(2), aniso.Explicit())
            for shape, start in (((40, 90), 0), ((12, 14, 30), 2)):  # loops over volumes take long to compile
                image = rng.normal(100, 30, shape).astype("float32")
                for scheme in schemes[start:]:
                    result = aniso.diffuse(image, aniso.Homogeneous(), 3.0, scheme=scheme, engine="cpu")
                    print(len(shape), scheme, hashlib.sha256(result.tobytes()).hexdigest())
        """
        compiled = run(tmp_path / "kernels", script)
        stored = stamps(tmp_path / "kernels")
        loaded = run(tmp_path / "kernels", script)
        assert compiled.stdout.count("\n") == 4
        assert compiled.stdout == loaded.stdout
        assert stamps(tmp_path / "kernels") == stored  # a second process compiles nothing


class TestLoading:
    def test_a_stored_kernel_is_loaded_without_what_only_the_compiler_needs(self, folder):
        script = (
            RUN
            + """
    import sys
    print("numba.np.linalg" in sys.modules)
"""
        )
        stored = stamps(folder)
        assert run(folder, script).stdout.split()[-1] == "False"
        assert stamps(folder) == stored

    def test_the_compiler_works_after_a_kernel_was_loaded(self, folder):
        path = next(path for path in files(folder) if ".add." in path.name)
        path.unlink()
        assert run(folder).stdout == run(folder).stdout
        assert path.exists()


class TestDamage:
    @pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
    def test_a_damaged_file_is_seen_before_it_is_loaded(self, folder, damage):
        path = files(folder)[0]
        assert cache._read(path)
        damage(path)
        with pytest.raises(ValueError, match="damaged"):
            cache._read(path)

    def test_damaged_files_are_replaced_with_one_line_for_each(self, folder, expected):
        for path in files(folder):
            change_a_byte(path)
        before = stamps(folder)
        first, second = run(folder), run(folder)
        assert first.stdout == second.stdout == expected
        assert first.stderr.count("\n") == first.stderr.count("compiles it again: the file is damaged") == 2
        assert second.stderr == ""
        assert stamps(folder).keys() == before.keys()

    def test_a_file_that_cannot_be_unpickled_is_replaced(self, folder, expected):
        for path, content in zip(files(folder), (b"no pickle", pickle.dumps(("too", "short"))), strict=True):
            path.write_bytes(cache._MAGIC + sha256(content).digest() + content)
        first = run(folder)
        assert first.stdout == expected
        assert first.stderr.count("compiles it again") == first.stderr.count("\n") == 2
        assert run(folder).stderr == ""

    def test_what_cannot_be_removed_is_no_hindrance(self, folder, expected):
        put_a_folder_in_its_place(files(folder)[0])
        answer = run(folder)
        assert answer.stdout == expected
        assert answer.stderr.count("cannot keep compiled kernels") == 1

    @pytest.mark.parametrize(
        ("error", "kept"),
        [
            *((OSError(code, os.strerror(code)), True) for code in (errno.EMFILE, errno.ENFILE, errno.EIO)),
            (OSError(errno.ENOMEM, "no memory"), True),
            (MemoryError(), True),
            (OSError(errno.EACCES, "not yours"), False),
            (EOFError("cut off"), False),
        ],
        ids=repr,
    )
    def test_a_shortage_of_the_moment_costs_no_file(self, folder, monkeypatch, caplog, error, kept):
        """What cannot be read now is compiled, and stays for later; what can never be read is removed."""
        path = files(folder)[0]

        def fail(_):
            raise error

        monkeypatch.setattr(cache, "_read", fail)
        monkeypatch.setattr(cache.KernelCache, "_path", lambda *_: path)
        context = SimpleNamespace(refresh=lambda: None, codegen=lambda: None)
        assert cache.KernelCache(fail).load_overload((), context) is None
        assert (path.exists(), not caplog.records) == (kept, kept)

    def test_a_stored_kernel_is_used(self, folder, expected):
        before = stamps(folder)
        no_compiler = """
            import numba.core.dispatcher
            def fail(*_): raise AssertionError("compiled")
            numba.core.dispatcher._FunctionCompiler.compile = fail
        """
        answer = run(folder, before=no_compiler)
        assert answer.stdout == expected
        assert answer.stderr == ""
        assert stamps(folder) == before

    def test_files_are_private(self, warm):
        if ON_UNIX:
            assert stat.S_IMODE(warm.stat().st_mode) == 0o700
            assert {stat.S_IMODE(path.stat().st_mode) for path in files(warm)} == {0o600}


class TestNoRoom:
    @unix
    def test_a_full_disk_costs_one_warning(self, tmp_path, expected):
        full = """
            import resource, signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        """
        answer = run(tmp_path / "kernels", before=full)
        assert answer.stdout == expected
        assert answer.stderr.count("cannot keep compiled kernels") == answer.stderr.count("\n") == 1
        assert "File too large" in answer.stderr
        assert files(tmp_path / "kernels") == []

    @root
    def test_a_folder_that_can_only_be_read_is_read(self, warm):
        # Other tests are in folders that only root can enter.
        with tempfile.TemporaryDirectory() as name:
            folder = Path(shutil.copytree(warm, Path(name) / "kernels"))
            for path, mode in ((folder.parent, 0o755), (folder, 0o755), (files(folder)[0], 0o644)):
                path.chmod(mode)
            before = files(folder)
            os.seteuid(SOMEBODY_ELSE)
            try:
                assert make_private(folder) == folder.resolve()
                assert cache._read(before[0])
                with pytest.raises(PermissionError, match="Permission denied"):
                    cache._write(folder / "a.kernel", b"content")
            finally:
                os.seteuid(0)
            assert files(folder) == before

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_nothing_is_left_of_a_file_that_was_not_finished(self, monkeypatch, tmp_path, error):
        def fail(*_):
            assert len(files(tmp_path)) == 1
            raise error

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(type(error)):
            cache._write(tmp_path / "a.kernel", b"content")
        assert files(tmp_path) == []

    def test_an_interrupted_module_is_made_again(self, monkeypatch, tmp_path):
        from aniso.engines.cpu import generate

        text = "import sys\nif interrupt(): raise KeyboardInterrupt\nvalue = 1\n"
        answers = iter([True, False])
        monkeypatch.setattr("builtins.interrupt", lambda: next(answers), raising=False)
        known = set(sys.modules)
        with pytest.raises(KeyboardInterrupt):
            generate._import("interrupted", text)
        assert set(sys.modules) == known
        module = generate._import("interrupted", text)
        assert module.value == 1
        del sys.modules[module.__name__]


KERNEL = "aniso_loops_0123456789abcdef0123.image_steps.{:016x}.kernel"


def pretend(folder, number, days, size=10, suffix=""):
    path = folder / (KERNEL.format(number) + suffix)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - 86_400 * days,) * 2)
    return path


class TestPruning:
    @pytest.fixture(autouse=True)
    def start(self, monkeypatch):
        cache._prune_once.cache_clear()
        monkeypatch.setattr(cache, "_used", set())
        yield
        cache._prune_once.cache_clear()

    def test_what_was_not_used_for_long_is_removed(self, tmp_path):
        old, recent = pretend(tmp_path, 1, 91), pretend(tmp_path, 2, 89)
        used = pretend(tmp_path, 3, 91)
        cache._used.add(used)
        half, fresh = (
            pretend(tmp_path, 4, 2, suffix=f".{8:032x}.tmp"),
            pretend(tmp_path, 5, 0, 0, f".{9:032x}.tmp"),
        )
        other = tmp_path / "thesis.tex"
        other.touch()
        os.utime(other, (0, 0))
        cache._prune_once(tmp_path)
        assert files(tmp_path) == sorted([recent, used, fresh, other])
        assert old not in files(tmp_path)
        assert half not in files(tmp_path)

    def test_the_last_used_stay_if_there_are_too_many(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cache, "_LARGEST_TOTAL", 250)
        paths = [pretend(tmp_path, number, number, 100) for number in range(1, 6)]
        cache._used.add(paths[4])
        cache._prune_once(tmp_path)
        assert files(tmp_path) == sorted([paths[0], paths[1], paths[4]])

    def test_a_kernel_in_use_counts_as_new(self, folder):
        path = files(folder)[0]
        os.utime(path, (0, 0))
        cache._read(path)
        assert time.time() - path.stat().st_mtime < 3600

    def test_storing_a_kernel_prunes_once(self, folder, expected):
        files(folder)[0].unlink()
        old = pretend(folder, 1, 91)
        assert run(folder).stderr == ""
        assert not old.exists()
        assert len(files(folder)) == 2

    def test_files_that_vanish_are_compiled_again(self, folder, expected):
        """A process that has looked for the files, but not loaded them yet, while another one prunes."""
        vanish = """
            import os
            from aniso.engines.cpu import cache
            load = cache._read
            def vanish(path):
                os.unlink(path)
                return load(path)
            cache._read = vanish
        """
        answer = run(folder, before=vanish)
        assert answer.stdout == expected
        assert answer.stderr == ""
        assert len(files(folder)) == 2

    def test_a_file_that_vanishes_while_pruning_is_no_error(self, tmp_path, monkeypatch):
        old = pretend(tmp_path, 1, 91)
        found = list(cache._own_files(tmp_path))
        old.unlink()
        monkeypatch.setattr(cache, "_own_files", lambda folder: found)
        cache._prune_once(tmp_path)


class TestThreads:
    def test_tracebacks_in_other_threads_do_not_disturb_a_first_call(self, warm, expected):
        tracebacks = """
            import threading, traceback
            def go_on():
                while True:
                    try: (lambda: 1 / 0)() + [1, 2][0] * 3
                    except ZeroDivisionError: traceback.format_exc()
            for _ in range(4): threading.Thread(target=go_on, daemon=True).start()
        """
        # End without waiting for the threads, which Python cannot stop safely.
        script = RUN + "    import os, sys; sys.stdout.flush(); os._exit(0)\n"
        answer = run(warm, before=tracebacks, script=script)
        assert answer.stdout == expected
        assert answer.stderr == ""

    def test_kernels_are_made_without_syntax_trees(self, warm, expected):
        no_ast = """
            import ast, builtins, numpy, scipy.ndimage, aniso.engines.cpu.evolution
            compiled = builtins.compile
            def compile(source, filename, mode, flags=0, *rest, **options):
                if flags & ast.PyCF_ONLY_AST: raise AssertionError("a syntax tree of " + str(filename))
                return compiled(source, filename, mode, flags, *rest, **options)
            builtins.compile = compile
        """
        assert run(warm, before=no_ast).stdout == expected


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="caches have other places there")
@pytest.mark.parametrize("given", [None, "", "relative/cache", "~/cache", "/elsewhere"])
def test_a_relative_cache_home_is_ignored(tmp_path, monkeypatch, given):
    """As the XDG Base Directory Specification requires."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if given is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert cache._user_cache() == (Path(given) if given == "/elsewhere" else tmp_path / ".cache")
