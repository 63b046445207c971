"""omkl doctor."""

import pytest
from typer.testing import CliRunner

from omkl import doctor
from omkl.cli import app


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ROWS", 100)


@pytest.mark.usefixtures("quick")
def test_it_shows_versions_a_self_test_and_the_time_of_a_row():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    for words in ("omkl ", "Python ", "engine ", "self-test", "budget small", "budget standard", "microseconds a row"):
        assert words in result.output
    assert "plotly" in result.output


@pytest.mark.usefixtures("quick")
def test_an_engine_that_computes_something_else_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "largest_difference", lambda: 1e-3)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "differ by 0.001" in result.output
