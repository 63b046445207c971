"""Fixtures that the tests of the laboratory share."""

from pathlib import Path

import pytest

from omkl_lab.data import sets


@pytest.fixture
def data_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder for OMKL_DATA and an empty cache folder."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("OMKL_DATA", str(own))
    monkeypatch.setattr(sets.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own, tmp_path / "cache" / "omkl"
