"""`aniso explore` before and after it serves: refusals, ports, doors, and its end."""

import asyncio
import builtins
import os
import signal
import socket

import pytest
from typer.testing import CliRunner

from aniso.cli import app
from aniso.explorer import server
from aniso.io.picture import FileError
from benchmarks.explorer_process import explorer
from tests.processes import PATIENCE


def called(*words):
    return CliRunner().invoke(app, ["explore", *map(str, words)], prog_name="aniso")


def test_a_missing_file_is_refused():
    answer = called("missing.png")
    assert answer.exit_code == 1
    assert "missing.png does not exist" in answer.output


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("no image", "utf-8")
    with socket.socket() as taken:  # so that no page opens
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = called(tmp_path / "notes.txt", "--port", taken.getsockname()[1], "--no-open")
    assert answer.exit_code == 1
    assert "does not have the suffix of an image format" in answer.output


def test_a_taken_port_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = called("--port", port)
        assert answer.exit_code == 1
        assert f"port {port} of 127.0.0.1 is in use. Give another one with --port." in answer.output


def test_by_default_a_free_port_is_found():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", server.USUAL_PORT))
        except OSError:
            pass  # somebody else has it: just as well
        else:
            taken.listen()
        assert server.free_port("127.0.0.1", None) > server.USUAL_PORT


@pytest.mark.parametrize("host", ["nonsense.invalid", "192.0.2.7"])
def test_a_host_that_is_somewhere_else_is_refused(host):
    answer = called("--host", host)
    assert answer.exit_code == 1
    assert f"{host} is not an address of this machine" in answer.output
    assert "--port" not in answer.output


def test_other_machines_are_told_an_address_that_they_can_use(monkeypatch):
    monkeypatch.setattr(server, "own_address", lambda family: "192.0.2.7")
    here, elsewhere = server.addresses("0.0.0.0", 9000, "secret")
    assert here == "http://127.0.0.1:9000/?token=secret"
    assert elsewhere == "http://192.0.2.7:9000/?token=secret"
    assert server.addresses("127.0.0.1", 9000, "secret") == ["http://127.0.0.1:9000/?token=secret"]
    assert server.addresses("::1", 9000, "secret") == ["http://[::1]:9000/?token=secret"]
    monkeypatch.setattr(server, "own_address", lambda family: None)  # there is no network
    assert server.addresses("0.0.0.0", 9000, "secret") == [here]


@pytest.mark.parametrize(
    "name", ["..", "a/../..", "", "/", "a\0b.png", 300 * "ä" + ".nii.gz", "C:\\x\\y.png"]
)
def test_names_of_uploads_are_names_of_files(name, tmp_path):
    plain = server.plain_name(name)
    (tmp_path / plain).write_bytes(b"")
    assert [path.name for path in tmp_path.iterdir()] == [plain]
    assert plain.endswith(".nii.gz") == name.endswith(".nii.gz")


def test_without_nicegui_it_says_what_to_install(monkeypatch):
    importing = builtins.__import__

    def without(name, *arguments, **options):
        if name == "aniso.explorer" and "server" in (arguments[2] or ()):
            raise ImportError("No module named 'nicegui'")
        return importing(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    answer = called()
    assert answer.exit_code == 1
    assert 'pip install "aniso[explorer]"' in answer.output


def test_it_ends_quietly():
    with explorer() as (_, process, said):
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    address, end = said  # on both streams
    assert address.startswith("The explorer is at ")
    assert end == "The explorer was stopped.\n"


def test_uploads_have_a_limit(tmp_path):
    class Request:
        def __init__(self, chunks, **headers):
            self.chunks, self.headers = chunks, headers
            self.taken = 0

        async def stream(self):
            for chunk in self.chunks:
                self.taken += 1
                yield chunk

    target = tmp_path / "file.png"
    asyncio.run(server._save(Request([b"1234", b"56"]), target, 8))  # type: ignore[arg-type]
    assert target.read_bytes() == b"123456"
    endless = Request([b"1234"] * 1000)
    with pytest.raises(FileError, match=r"file.png exceeds the upload limit .* Give its path"):
        asyncio.run(server._save(endless, target, 8))  # type: ignore[arg-type]
    assert not target.exists()
    assert endless.taken == 3
    announced = Request([b"1234"], **{"content-length": "9"})
    with pytest.raises(FileError, match=r"file.png exceeds the upload limit .* Give its path"):
        asyncio.run(server._save(announced, target, 8))  # type: ignore[arg-type]
    assert announced.taken == 0
