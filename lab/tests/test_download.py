"""Downloading data sets from a server that misbehaves, and converting them."""

import http.server
import io
import os
import re
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from data_sets import DATA, data_needed
from lab_command import invoke

from omkl_lab.data import download
from omkl_lab.data.download import ARCHIVES, DownloadError, fetch
from omkl_lab.data.sets import PAPER, locate
from omkl_lab.data.table import read_table

# Downloading


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    return buffer.getvalue()


def airfoil_archive(rows: int = 1503, cell: str = "3") -> bytes:
    lines = [f"1\t2\t{cell}\t4\t5\t{k}" for k in range(rows)]
    return zipped({"airfoil_self_noise.dat": "\n".join(lines).encode()})


class Server(http.server.ThreadingHTTPServer):
    respond: Callable[[http.server.BaseHTTPRequestHandler], None]
    requests: list[str]


@pytest.fixture
def server(data_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.requests.append(self.path)
            running.respond(self)

        def log_message(self, *_: object) -> None:
            pass

    running = Server(("127.0.0.1", 0), Handler)
    running.requests = []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(download, "UCI", f"http://127.0.0.1:{running.server_address[1]}")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def give(content: bytes, length: int | None = None, code: int = 200) -> Callable[..., None]:
    def respond(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return respond


def no_file_is_left(data_folders: tuple[Path, Path]) -> bool:
    return not data_folders[1].exists() or os.listdir(data_folders[1]) == []


def test_a_data_set_is_downloaded_checked_and_stored(server: Server, data_folders: tuple[Path, Path]):
    server.respond = give(airfoil_archive())
    ticks: list[tuple[int, int | None]] = []
    path = fetch("airfoil", lambda done, total: ticks.append((done, total)))
    assert path == data_folders[1] / "airfoil.csv"
    assert server.requests == ["/291/airfoil+self+noise.zip"]
    assert ticks[-1][0] == ticks[-1][1]
    found = read_table(path)
    assert (len(found.y), found.X.shape[1], found.columns[0]) == (1503, 5, "frequency_hz")
    assert locate("airfoil") == path
    assert os.listdir(data_folders[1]) == ["airfoil.csv"]


def test_a_broken_connection_is_retried(server: Server, data_folders: tuple[Path, Path]):
    complete = airfoil_archive()
    cut = give(complete[:100], length=len(complete))
    server.respond = lambda handler: (cut if len(server.requests) < 3 else give(complete))(handler)
    assert fetch("airfoil").is_file()
    assert len(server.requests) == 3


def test_a_connection_that_always_breaks_leaves_no_file(server: Server, data_folders: tuple[Path, Path]):
    server.respond = give(b"PK", length=1000)
    with pytest.raises(DownloadError, match=r"2 of 1000 bytes, 3 times|IncompleteRead"):
        fetch("airfoil")
    assert len(server.requests) == download.TRIES
    assert no_file_is_left(data_folders)


def test_404_is_reported_and_not_retried(server: Server, data_folders: tuple[Path, Path]):
    server.respond = give(b"no", code=404)
    with pytest.raises(DownloadError, match=r"/291/airfoil\+self\+noise\.zip: the server responded 404"):
        fetch("airfoil")
    assert len(server.requests) == 1
    assert no_file_is_left(data_folders)


def test_a_server_error_is_retried(server: Server):
    server.respond = lambda handler: (
        give(b"", code=503) if len(server.requests) == 1 else give(airfoil_archive())
    )(handler)  # fmt: skip
    assert fetch("airfoil").is_file()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>moved</html>", "not a zip archive"),
        (zipped({"other.txt": b"1"}), "the archive has no airfoil_self_noise.dat, only other.txt"),
        (airfoil_archive(rows=1502), "1502 rows in airfoil_self_noise.dat, expected 1503"),
        (airfoil_archive(cell="3\t3"), "7 columns in row 1, expected 6"),
        (airfoil_archive(cell="red"), "'red' in row 1, expected a number"),
        (zipped({"airfoil_self_noise.dat": b"\xff\xfe"}), "has an unexpected format"),
        (airfoil_archive()[:-30], "not a zip archive"),
    ],
)
def test_unexpected_content_is_refused_and_leaves_no_file(
    server: Server, data_folders: tuple[Path, Path], content: bytes, message: str
):
    server.respond = give(content)
    with pytest.raises(DownloadError, match=re.escape(message)):
        fetch("airfoil")
    assert no_file_is_left(data_folders)


@pytest.mark.parametrize("length", [None, 10**9])
def test_a_download_that_is_too_large_is_refused(
    server: Server, data_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, length: int | None
):
    monkeypatch.setattr(download, "LIMIT", 1000)
    server.respond = give(bytes(5000), length)
    with pytest.raises(DownloadError, match="larger than 1000 bytes"):
        fetch("airfoil")
    assert no_file_is_left(data_folders)


def test_an_archive_whose_content_is_too_large_is_not_unpacked(server: Server, monkeypatch: pytest.MonkeyPatch):
    bomb = zipped({"airfoil_self_noise.dat": bytes(100_000)})
    monkeypatch.setattr(download, "LIMIT", 10_000)
    server.respond = give(bomb)
    with pytest.raises(DownloadError, match="is larger than 10000 bytes"):
        fetch("airfoil")


def test_an_unreachable_server_is_one_line(data_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(download, "UCI", "http://127.0.0.1:1")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    result = invoke("data", "fetch", "airfoil")
    assert result.exit_code == 2
    assert re.fullmatch(r"omkl: http://127\.0\.0\.1:1/291.*is there a network\?\n", result.stderr)


def test_a_data_set_without_an_archive_cannot_be_downloaded(data_folders: tuple[Path, Path]):
    with pytest.raises(DownloadError, match=r"device cannot be downloaded: put device\.csv"):
        fetch("device")


def test_data_fetch_continues_after_a_failure_and_then_fails(server: Server, data_folders: tuple[Path, Path]):
    server.respond = lambda handler: (
        give(airfoil_archive()) if "/291/" in handler.path else give(b"", code=404)
    )(handler)  # fmt: skip
    result = invoke("data", "fetch", "naval", "airfoil")
    assert result.exit_code == 2
    assert "404" in result.stderr
    assert result.stdout.strip() == str(data_folders[1] / "airfoil.csv")


def test_addresses_are_uci_s_and_every_data_set_of_the_paper_has_one():
    assert set(PAPER) < set(ARCHIVES)
    for archive in ARCHIVES.values():
        assert re.fullmatch(rf"{re.escape(download.UCI)}/{archive.id}/[a-z+]+\.zip", archive.url)


# Converters


def spreadsheet(rows: list[list[float | str]]) -> bytes:
    """A worksheet in the format of Excel 2.1."""

    def record(code: int, body: bytes) -> bytes:
        return struct.pack("<HH", code, len(body)) + body

    out = record(0x0009, struct.pack("<HH", 2, 0x10))
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            place = struct.pack("<HH3x", r, c)
            if isinstance(cell, str):
                out += record(0x0004, place + bytes([len(cell)]) + cell.encode())
            else:
                out += record(0x0003, place + struct.pack("<d", cell))
    return out + record(0x000A, b"")


def test_concrete_is_read_from_its_spreadsheet_with_every_digit():
    pytest.importorskip("xlrd", reason="old Excel files are read with xlrd")
    rows = download.concrete(spreadsheet([["h"] * 9, [540.0, 0.0, 0.0, 162.0, 2.5, 1040.0, 676.0, 28.0, 79.98611076]]))
    assert rows[0][-1] == "target"
    assert [float(cell) for cell in rows[1]] == [540, 0, 0, 162, 2.5, 1040, 676, 28, 79.98611076]


def test_a_concrete_file_that_is_not_a_spreadsheet_is_refused():
    pytest.importorskip("xlrd", reason="old Excel files are read with xlrd")
    with pytest.raises(ValueError, match="not a spreadsheet"):
        download.concrete(b"cement,water\n1,2\n")


def test_the_first_column_of_naval_becomes_the_target_and_the_last_two_are_dropped():
    (header, row) = download.naval(b"   " + b"   ".join(f"{k}.0e+00".encode() for k in range(18)) + b" \n")
    assert len(header) == 16
    assert row == [f"{k}.0e+00" for k in (*range(1, 16), 0)]


def test_wine_keeps_its_columns_with_names_without_spaces():
    header, row = download.wine_white(b'"fixed acidity";"pH";"quality"\n7;3.1;6\n')
    assert (header, row) == (["fixed_acidity", "pH", "target"], ["7", "3.1", "6"])


def test_bias_drops_station_date_and_the_lines_of_extremes():
    text = (
        "station,Date,Present_Tmax,lat,Solar radiation,Next_Tmax,Next_Tmin\n"
        "1,2013-06-30,28.7,37.6,5992,29.1,21.2\n2,2013-06-30,,37.6,5869,30.5,22.5\n,,20,37,4329,17,11\n"
    )
    header, *rows = download.bias(text.encode())
    assert header == ["Present_Tmax", "lat", "Solar_radiation", "target"]
    assert rows == [["28.7", "37.6", "5992", "21.2"], ["NaN", "37.6", "5869", "22.5"]]


@data_needed
@pytest.mark.parametrize(("name", "target_first"), [("airfoil", False), ("naval", True)])
def test_a_downloaded_data_set_has_the_same_numbers_as_the_local_file(name: str, target_first: bool, server: Server):
    """The original file is rebuilt from ours, served, downloaded and converted."""
    mine = read_table(Path(DATA) / f"{name}.csv")
    columns = (mine.y, mine.X, np.ones((len(mine.y), 2))) if target_first else (mine.X, mine.y)
    complete = np.column_stack(columns)
    text = io.BytesIO()
    np.savetxt(text, complete, fmt="%.17g")
    member = ARCHIVES[name].member
    server.respond = give(zipped({f"__MACOSX/{member}": b"junk", f"some folder/{member}": text.getvalue()}))
    again = read_table(fetch(name))
    assert again.columns == mine.columns
    np.testing.assert_array_equal(again.X, mine.X)
    np.testing.assert_array_equal(again.y, mine.y)
