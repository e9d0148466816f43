"""Kernels of other users: neither their folders nor their files are trusted."""

import contextlib
import os
import pickle
import shutil
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from aniso.engines.cpu import cache
from aniso.engines.cpu.private_folder import make_private
from tests.engines.kernel_files import SOMEBODY_ELSE, files, root, run, unix


class Trap:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@unix
class TestFolders:
    def test_missing_folders_are_made_private(self, tmp_path):
        made = make_private(tmp_path / "a" / "b")
        assert [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent)] == [0o700, 0o700]

    def test_a_folder_of_the_first_release_serves(self, tmp_path):
        tmp_path.chmod(0o755)
        assert make_private(tmp_path) == tmp_path.resolve()

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
    def test_a_folder_that_others_can_write_to_is_refused(self, tmp_path, mode):
        tmp_path.chmod(mode)
        with pytest.raises(PermissionError, match=r"other users can write to .* chmod go-w"):
            make_private(tmp_path)

    @pytest.mark.parametrize("mode", [0o707, 0o777])
    def test_nor_may_they_write_to_a_folder_above(self, tmp_path, mode):
        (tmp_path / "above").mkdir()
        (tmp_path / "above").chmod(mode)
        with pytest.raises(PermissionError, match=r"other users can write to .*above: "):
            make_private(tmp_path / "above" / "kernels")

    def test_unless_it_is_sticky(self, tmp_path):
        (tmp_path / "above").mkdir()
        (tmp_path / "above").chmod(0o1777)
        assert make_private(tmp_path / "above" / "kernels").is_dir()

    def test_a_group_may_write_above_only_if_it_is_the_user_alone(self, tmp_path, monkeypatch):
        from aniso.engines.cpu import private_folder

        (tmp_path / "above").mkdir()
        (tmp_path / "above").chmod(0o770)
        for alone in (True, False):
            monkeypatch.setattr(private_folder, "_is_own_group", lambda gid, alone=alone: alone)
            with contextlib.nullcontext() if alone else pytest.raises(PermissionError, match="write to"):
                make_private(tmp_path / "above" / "kernels")

    def test_a_link_is_refused(self, tmp_path):
        (tmp_path / "kernels").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to("kernels")
        with pytest.raises(PermissionError, match=r"is a symbolic link: give the folder itself"):
            make_private(tmp_path / "link")

    def test_a_link_above_is_followed(self, tmp_path):
        (tmp_path / "above").mkdir()
        (tmp_path / "link").symlink_to("above")
        assert make_private(tmp_path / "link" / "kernels") == (tmp_path / "above" / "kernels").resolve()

    def test_links_in_a_circle_are_refused(self, tmp_path):
        (tmp_path / "link").symlink_to("link")
        with pytest.raises(OSError, match="symbolic link"):
            make_private(tmp_path / "link" / "kernels")

    @root
    def test_a_folder_of_somebody_else_is_refused(self, tmp_path):
        (tmp_path / "above" / "kernels").mkdir(parents=True)
        for theirs in ("above/kernels", "above"):
            os.chown(tmp_path / theirs, SOMEBODY_ELSE, -1)
            with pytest.raises(PermissionError, match=f"{theirs} belongs to another user .uid 12345"):
                make_private(tmp_path / "above" / "kernels")

    @root
    def test_a_link_of_somebody_else_is_refused(self, tmp_path):
        (tmp_path / "above").mkdir()
        (tmp_path / "link").symlink_to("above")
        os.chown(tmp_path / "link", SOMEBODY_ELSE, -1, follow_symlinks=False)
        with pytest.raises(PermissionError, match="link belongs to another user"):
            make_private(tmp_path / "link" / "kernels")

    @root
    def test_a_home_of_somebody_else_is_not_trusted(self, tmp_path, monkeypatch):
        os.chown(tmp_path, SOMEBODY_ELSE, -1)
        monkeypatch.setenv("HOME", str(tmp_path))
        with pytest.raises(PermissionError, match="belongs to another user"):
            make_private(tmp_path / ".cache" / "aniso")
        assert list(tmp_path.iterdir()) == []

    def test_above_a_home_of_ones_own_nothing_is_asked(self, tmp_path, monkeypatch):
        (tmp_path / "above" / "home").mkdir(parents=True)
        (tmp_path / "above").chmod(0o777)
        monkeypatch.setenv("HOME", str(tmp_path / "above" / "home"))
        assert make_private(tmp_path / "above" / "home" / ".cache").is_dir()
        (tmp_path / "above" / "home").chmod(0o777)
        with pytest.raises(PermissionError, match="other users can write to"):
            make_private(tmp_path / "above" / "home" / ".cache")


@unix
class TestFiles:
    """Pickles and files that somebody else may have written are not loaded."""

    def test_a_pickle_in_a_shared_folder_does_not_run(self, folder, tmp_path, expected):
        trap = tmp_path / "trap"
        content = pickle.dumps(Trap(trap))
        for path in files(folder):
            path.write_bytes(cache._MAGIC + sha256(content).digest() + content)
        folder.chmod(0o777)
        answer = run(folder)
        assert answer.stdout == expected
        assert answer.stderr.count("cannot keep compiled kernels") == answer.stderr.count("\n") == 1
        assert "other users can write to" in answer.stderr
        assert not trap.exists()
        # The trap is one: it runs if the folder is trusted.
        folder.chmod(0o700)
        run(folder)
        assert trap.exists()

    @root
    def test_a_pickle_in_a_folder_planted_in_the_temporary_one_does_not_run(self, tmp_path, warm, expected):
        temporary, trap = tmp_path / "tmp", tmp_path / "trap"
        temporary.mkdir()
        temporary.chmod(0o1777)
        planted = temporary / "aniso-0"
        shutil.copytree(warm, planted / "aniso" / "kernels")
        content = pickle.dumps(Trap(trap))
        for path in files(planted / "aniso" / "kernels"):
            path.write_bytes(cache._MAGIC + sha256(content).digest() + content)
        no_home = """
            import pathlib
            def fail(cls): raise RuntimeError("no home")
            pathlib.Path.home = classmethod(fail)
        """
        for theirs in (planted, planted / "aniso", planted / "aniso" / "kernels"):
            os.chown(theirs, SOMEBODY_ELSE, -1)
        answer = run("", before=no_home, TMPDIR=str(temporary))
        assert answer.stdout == expected
        assert "aniso-0 belongs to another user" in answer.stderr
        assert not trap.exists()

    @pytest.mark.parametrize("mode", [0o620, 0o602])
    def test_a_file_that_others_can_write_to_is_not_loaded(self, folder, mode):
        files(folder)[0].chmod(mode)
        with pytest.raises(PermissionError, match="other users can write to"):
            cache._read(files(folder)[0])

    @root
    def test_a_file_of_somebody_else_is_not_loaded(self, folder):
        os.chown(files(folder)[0], SOMEBODY_ELSE, -1)
        with pytest.raises(PermissionError, match="belongs to another user"):
            cache._read(files(folder)[0])

    def test_a_link_to_a_file_is_not_loaded(self, folder):
        first, second = files(folder)
        first.unlink()
        first.symlink_to(second)
        with pytest.raises(OSError, match="symbolic link"):
            cache._read(first)
