"""What tests of files share."""

import pytest


@pytest.fixture(autouse=True)
def _no_temporary_files(tmp_path):
    yield
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
