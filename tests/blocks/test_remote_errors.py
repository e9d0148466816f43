"""Stores at URLs: errors before anything is computed, permissions, secrets, and places."""

import json
import pickle
from typing import Any

import dask.array as da
import pytest

import aniso
from aniso.blocks.stores import cluster, journal, remote
from aniso.blocks.stores.places import LocalPlace
from aniso.blocks.stores.urls import options_for, place_of
from tests.blocks import s3
from tests.blocks.stores import zarr
from tests.cli.command_calls import called
from tests.processes import PATIENCE

pytestmark = pytest.mark.slow


class TestErrors:
    """Clear and soon, before anything is computed."""

    @pytest.fixture(autouse=True)
    def no_cluster(self, monkeypatch):
        def reject(*_):
            raise AssertionError("workers were started")

        monkeypatch.setattr("aniso.blocks.stores.filtering.connect", reject)
        monkeypatch.setattr("aniso.blocks.stores.filtering.make_plan", reject)

    def fails(self, source, target, given, error, match):
        with pytest.raises(error, match=match) as found:
            aniso.filter_store(source, target, "denoise", storage_options=given)
        assert s3.SECRET not in str(found.value)

    def test_missing_buckets(self, given, source):
        for first, last in (("s3://lost/in.zarr", "out.zarr"), (source, "s3://lost/out.zarr")):
            self.fails(first, last, given, FileNotFoundError, "bucket s3://lost does not exist")

    def test_a_missing_store(self, given, target):
        self.fails(target, f"{target}.b", given, FileNotFoundError, r"out\.zarr does not exist")

    def test_no_server(self, source):
        away = s3.options("http://127.0.0.1:9")
        self.fails(
            source, "out.zarr", away, ConnectionError, "s3://bucket does not answer: connection refused"
        )

    def test_no_web_server(self):
        self.fails("https://127.0.0.1:9/in.zarr", "out.zarr", {}, ConnectionError, "does not answer")

    def test_targets_on_the_web(self, given, source, server):
        self.fails(source, f"{server}/bucket/out.zarr", given, ValueError, "web servers are read only")

    def test_options_and_urls_that_make_no_sense(self, given, source):
        self.fails(
            source, "s3://b/x", {**given, "colour": 1}, ValueError, "storage option 'colour' is unknown"
        )
        self.fails(source, "s3://b/x", {**given, "a.b": 1}, ValueError, r"storage option a\.b is unknown")
        self.fails(source, "ftp://b/x", given, ValueError, "begin with s3://")
        self.fails(source, "s3://bucket", given, ValueError, "must name a bucket and a store")
        self.fails(source, f"s3://user:{s3.SECRET}@b/x", given, ValueError, "must not contain credentials")
        self.fails(source, f"s3://b/x?sig={s3.SECRET}", given, ValueError, "must not contain credentials")

    def test_a_server_without_conditional_writes(self, given, source, target, monkeypatch):
        import obstore

        put = obstore.put
        monkeypatch.setattr(
            obstore, "put", lambda client, key, data, mode="overwrite": put(client, key, data)
        )
        self.fails(source, target, given, OSError, "ignores the condition")


class TestPermissions:
    """Servers that check credentials."""

    @pytest.fixture
    def reader(self, server):
        """Options of a user who may only read."""
        import boto3

        here: dict[str, Any] = {
            "endpoint_url": server, "region_name": "us-east-1", "aws_access_key_id": "x",
            "aws_secret_access_key": "y",
        }  # fmt: skip
        iam = boto3.client("iam", **here)
        name = "reader"
        iam.create_user(UserName=name)
        allowed = {"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName=name, PolicyName="read", PolicyDocument=policy)
        found = iam.create_access_key(UserName=name)["AccessKey"]
        s3.check_credentials(server, True)
        try:
            yield s3.options(
                server, access_key_id=found["AccessKeyId"], secret_access_key=found["SecretAccessKey"]
            )
        finally:
            s3.check_credentials(server, False)

    def test_wrong_credentials_and_a_target_that_may_only_be_read(self, source, target, given, reader):
        for options, goal, code in (
            (given, "out.zarr", "InvalidAccessKeyId"),
            (reader, target, "AccessDenied"),
        ):
            with pytest.raises(PermissionError, match=rf"s3://bucket denied access \({code}\)"):
                aniso.filter_store(source, goal, "denoise", storage_options=options)


class TestSecrets:
    def test_they_are_nowhere(self, server, source, target, tmp_path, given, monkeypatch):
        """Neither in objects, files and messages of a run, nor in the texts of objects."""
        kept: dict[str, bytes] = {}
        write = remote.RemotePlace.write

        def watched(place, contents):
            kept[str(place)] = contents
            write(place, contents)

        monkeypatch.setattr(remote.RemotePlace, "write", watched)
        monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path / "dask"))
        monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)  # the machine may be busy
        words = [f"--storage-option={name}={value}" for name, value in given.items()]
        run = ["diffuse", source, target, "--time", "1", "--workers", "1", "--memory", "1GB", *words]
        texts = []
        for more in (["--json"], ["--debug"], ["--storage-option", "oops"]):
            answer = called(tmp_path, *run, *more)
            texts += [answer.stdout, answer.stderr]
        assert "already exists" in "".join(texts)
        assert any(name.endswith("run.json") for name in kept)
        place: Any = place_of(target, given)
        texts += [repr(place), str(place.options), str(place.node), repr(place.node.store), f"{vars(place)}"]
        texts += [contents.decode("latin-1") for contents in kept.values()]
        texts += [path.read_text("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
        texts += [((place / name).read() or b"").decode("latin-1") for name in s3.names(target, given)]
        assert not [text for text in texts if s3.SECRET in text]
        assert s3.SECRET.encode() in pickle.dumps(place)  # workers have it

    def test_environment_variables_stay_on_their_machine(self, server, source, monkeypatch):
        for name, value in s3.environment(server).items():
            monkeypatch.setenv(name, value)
        place = place_of(source)
        assert place.exists()
        for sent in (
            place,
            zarr.open_array(place.node, mode="r"),
            da.from_array(zarr.open_array(place.node)),
        ):
            assert s3.SECRET.encode() not in pickle.dumps(sent)


def test_maps_do_not_replace_an_interrupted_run(given, source, target, tmp_path):
    folder = journal.folder_of(place_of(target, given))
    (folder / "run.json").write(b'{"verb": "denoise"}')
    (folder / "pass-0000-image.zarr" / "zarr.json").write(b"{}")
    words = [f"--storage-option={name}={value}" for name, value in given.items()]
    answer = called(tmp_path, "structure", source, target, *words)
    assert answer.exit_code == 1
    assert "holds an interrupted run with another command" in answer.stderr
    assert (folder / "run.json").read() == b'{"verb": "denoise"}'


class TestPlaces:
    def test_urls_of_files_are_paths(self, tmp_path):
        assert place_of(f"file://{tmp_path}/a%20b.zarr") == LocalPlace(tmp_path / "a b.zarr")
        with pytest.raises(ValueError, match="another machine"):
            place_of("file://host/a.zarr")

    def test_options_for_one_end(self):
        options = {"region": "a", "source.skip_signature": True, "target.region": "b"}
        assert options_for("source", options) == {"region": "a", "skip_signature": True}
        assert options_for("target", options) == {"region": "b"}

    def test_both_kinds_do_the_same(self, given, tmp_path, request):
        for root in (LocalPlace(tmp_path), place_of(f"s3://{s3.BUCKET}/{request.node.name}", given)):
            place = root / "folder"
            assert not place.exists()
            assert (place / "a").read() is None
            (place / "b" / "c").write(b"text")
            (place / "a").write(b"")
            assert place.exists()
            assert (place / "b").exists()
            assert place.children() == ["a", "b"]
            assert (place / "b" / "c").read() == b"text"
            assert [name for name, _ in place.files()] == ["a", "b/c"]
            before = list(place.files())
            (place / "b" / "c").write(b"more")
            assert list(place.files())[1] != before[1]
            with (place / "list").open_list() as record:
                record("0.1")
                record("0.2")
            assert (place / "list").lines() == {"0.1", "0.2"}
            with (place / "list").open_list() as record:
                record("0.3")
            assert (place / "list").lines() == {"0.1", "0.2", "0.3"}
            assert place.rename("other").name == "other"
            (place / "b").remove()
            assert (place / "b" / "c").read() is None
            place.remove()
            assert not place.exists()
