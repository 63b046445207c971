"""Data sets: names, shelves, reading, and fetching from a server that misbehaves."""

import gzip
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
from command import invoke
from omkl_lab.data import download, sets
from omkl_lab.data.download import ARCHIVES, DownloadError, fetch
from omkl_lab.data.sets import EMBEDDED, PAPER, SETS, MissingSetError, load, locate
from omkl_lab.data.table import BadTableError, read_table
from streams import DATA, data_needed


@pytest.fixture
def shelves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder for OMKL_DATA and an empty cache."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("OMKL_DATA", str(own))
    monkeypatch.setattr(sets.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own, tmp_path / "cache" / "omkl"


# Reading


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a,b\n1,2\n", "line 1, column 2", "'target'"),
        ("target\n1\n", "line 1, column 1", "at least one feature"),
        ("", "line 1, column 1", "empty line"),
        ("a,target\n", "line 2, column 1", "the file ends"),
        ("a,b,target\n1,2,3\n1,2\n", "line 3, column 3", "the target is missing"),
        ("a,b,target\n1,2,3\n1,2,\n", "line 3, column 3 (target)", "empty cell"),
        ("a,b,target\n1,2,3\n1,2,3,4\n", "line 3, column 4", "wanted 3 cells, got 4"),
        ("a,b,target\n1,2,3,4\n5,6,7,8\n", "line 2, column 4", "wanted 3 cells, got 4"),
        ("a,b,target\n1,red,3\n", "line 2, column 2 (b)", "'red'"),
        ("a,b,target\n1,2,3\n\n1,NaN,3\n", "line 4, column 2 (b)", "'NaN'"),
        ("a,b,target\n1,2,inf\n", "line 2, column 3 (target)", "'inf'"),
    ],
)
def test_a_bad_table_is_refused_with_file_line_and_column(tmp_path: Path, text: str, place: str, said: str):
    path = table(tmp_path, text)
    with pytest.raises(BadTableError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}, {place}: ")
    assert said in str(caught.value)


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path):
    for name, content in (("x.csv", b"a,target\n\xff\xfe,1\n"), ("x.csv.gz", gzip.compress(b"a,target\n1,2\n")[:-9])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadTableError, match=re.escape(name)):
            read_table(tmp_path / name)


def test_rows_with_gaps_are_left_out_where_that_was_asked_for(tmp_path: Path):
    found = read_table(table(tmp_path, "a,b,target\n1,2,3\nNaN,5,6\n7,8,NaN\n9,10,11\n"), gaps=True)
    assert found.X.tolist() == [[1, 2], [9, 10]]
    assert found.y.tolist() == [3, 11]


def test_a_packed_file_reads_like_the_plain_one(tmp_path: Path):
    text = "a,b,target\n1,2,3\n4,5,6\n"
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    plain, packed = read_table(table(tmp_path, text)), read_table(tmp_path / "packed.csv.gz")
    assert plain.columns == packed.columns == ("a", "b")
    np.testing.assert_array_equal(plain.X, packed.X)


# Names and shelves


def test_the_own_folder_comes_before_the_cache(shelves: tuple[Path, Path]):
    own, cache = shelves
    cache.mkdir(parents=True)
    assert locate("airfoil") is None
    (cache / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    assert locate("airfoil") == cache / "airfoil.csv"
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    assert locate("airfoil") == own / "airfoil.csv"


def test_a_missing_set_says_how_to_get_it(shelves: tuple[Path, Path]):
    with pytest.raises(MissingSetError, match=r"omkl data fetch naval, or put naval\.csv .* OMKL_DATA"):
        load("naval")
    with pytest.raises(MissingSetError, match=r"put twitter\.csv .*not served.*JMLR"):
        load("twitter")


def test_an_unknown_set_names_those_there_are():
    with pytest.raises(ValueError, match=f"'arfoil'; there are {', '.join(SETS)}"):
        locate("arfoil")


def test_labels_stay_labels_and_others_are_refused(shelves: tuple[Path, Path]):
    own, _ = shelves
    (own / "har.csv").write_text("a,target\n1,-1\n3,1\n")
    assert load("har").y.tolist() == [-1, 1]
    (own / "har.csv").write_text("a,target\n1,0\n3,1\n")
    with pytest.raises(ValueError, match="must be -1 and 1, got 0"):
        load("har")


@pytest.mark.parametrize("text", ["a,target\n1,2\n3,2\n", "a,target\n0,1\n0,2\n"])
def test_a_stream_with_nothing_to_learn_is_refused(tmp_path: Path, text: str):
    with pytest.raises(ValueError, match="nothing to learn"):
        load(str(table(tmp_path, text)))


@data_needed
@pytest.mark.parametrize("name", SETS)
def test_every_file_has_the_rows_and_features_that_the_list_says(name: str):
    if name not in EMBEDDED and locate(name) is None:
        pytest.skip(f"{name} is not at hand")
    assert load(name).X.shape == (SETS[name].rows, SETS[name].features)


def test_data_list_shows_every_set_and_whether_it_is_at_hand(shelves: tuple[Path, Path]):
    own, _ = shelves
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    lines = {line.split()[0]: line for line in invoke("data", "list").output.splitlines() if line.strip()}
    assert set(SETS) <= set(lines)
    assert "missing" not in lines["airfoil"]
    assert "missing; omkl data fetch" in lines["naval"]
    assert "missing; bring it yourself" in lines["twitter"]
    assert "embedded" in lines["mixture"]


def test_data_path_is_one_line_or_says_how_to_get_the_set(shelves: tuple[Path, Path]):
    own, _ = shelves
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    path = invoke("data", "path", "airfoil")
    assert path.output == f"{own / 'airfoil.csv'}\n"
    missing = invoke("data", "path", "naval")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr.startswith("omkl: naval is not at hand: run omkl data fetch naval")


# Fetching


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
    answer: Callable[[http.server.BaseHTTPRequestHandler], None]
    asked: list[str]


@pytest.fixture
def server(shelves: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.asked.append(self.path)
            running.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    running = Server(("127.0.0.1", 0), Handler)
    running.asked = []
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(download, "UCI", f"http://127.0.0.1:{running.server_address[1]}")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def give(content: bytes, length: int | None = None, code: int = 200) -> Callable[..., None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def nothing_is_left(shelves: tuple[Path, Path]) -> bool:
    return not shelves[1].exists() or os.listdir(shelves[1]) == []


def test_a_set_is_fetched_checked_and_kept(server: Server, shelves: tuple[Path, Path]):
    server.answer = give(airfoil_archive())
    heard: list[tuple[int, int | None]] = []
    path = fetch("airfoil", lambda done, total: heard.append((done, total)))
    assert path == shelves[1] / "airfoil.csv"
    assert server.asked == ["/291/airfoil+self+noise.zip"]
    assert heard[-1][0] == heard[-1][1]
    found = read_table(path)
    assert (len(found.y), found.X.shape[1], found.columns[0]) == (1503, 5, "frequency_hz")
    assert locate("airfoil") == path
    assert os.listdir(shelves[1]) == ["airfoil.csv"]


def test_a_cut_connection_is_tried_again(server: Server, shelves: tuple[Path, Path]):
    whole = airfoil_archive()
    cut = give(whole[:100], length=len(whole))
    server.answer = lambda handler: (cut if len(server.asked) < 3 else give(whole))(handler)
    assert fetch("airfoil").is_file()
    assert len(server.asked) == 3


def test_a_connection_cut_every_time_leaves_nothing(server: Server, shelves: tuple[Path, Path]):
    server.answer = give(b"PK", length=1000)
    with pytest.raises(DownloadError, match=r"2 of 1000 bytes, 3 times|IncompleteRead"):
        fetch("airfoil")
    assert len(server.asked) == download.TRIES
    assert nothing_is_left(shelves)


def test_404_is_final_and_said(server: Server, shelves: tuple[Path, Path]):
    server.answer = give(b"no", code=404)
    with pytest.raises(DownloadError, match=r"/291/airfoil\+self\+noise\.zip: the server says 404"):
        fetch("airfoil")
    assert len(server.asked) == 1
    assert nothing_is_left(shelves)


def test_a_server_in_trouble_is_asked_again(server: Server):
    server.answer = lambda handler: (
        give(b"", code=503) if len(server.asked) == 1 else give(airfoil_archive())
    )(handler)  # fmt: skip
    assert fetch("airfoil").is_file()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<html>moved</html>", "not a zip archive"),
        (zipped({"other.txt": b"1"}), "no airfoil_self_noise.dat in it, but other.txt"),
        (airfoil_archive(rows=1502), "1502 rows in airfoil_self_noise.dat, wanted 1503"),
        (airfoil_archive(cell="3\t3"), "7 columns in row 1, wanted 6"),
        (airfoil_archive(cell="red"), "'red' in row 1, wanted a number"),
        (zipped({"airfoil_self_noise.dat": b"\xff\xfe"}), "is not what it was"),
        (airfoil_archive()[:-30], "not a zip archive"),
    ],
)
def test_wrong_content_is_refused_and_leaves_nothing(
    server: Server, shelves: tuple[Path, Path], content: bytes, said: str
):
    server.answer = give(content)
    with pytest.raises(DownloadError, match=re.escape(said)):
        fetch("airfoil")
    assert nothing_is_left(shelves)


@pytest.mark.parametrize("length", [None, 10**9])
def test_what_is_too_large_is_not_taken_in(
    server: Server, shelves: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, length: int | None
):
    monkeypatch.setattr(download, "LIMIT", 1000)
    server.answer = give(bytes(5000), length)
    with pytest.raises(DownloadError, match="larger than 1000 bytes"):
        fetch("airfoil")
    assert nothing_is_left(shelves)


def test_an_archive_that_swells_is_not_unpacked(server: Server, monkeypatch: pytest.MonkeyPatch):
    bomb = zipped({"airfoil_self_noise.dat": bytes(100_000)})
    monkeypatch.setattr(download, "LIMIT", 10_000)
    server.answer = give(bomb)
    with pytest.raises(DownloadError, match="is larger than 10000 bytes"):
        fetch("airfoil")


def test_no_server_at_all_is_one_line(shelves: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(download, "UCI", "http://127.0.0.1:1")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    result = invoke("data", "fetch", "airfoil")
    assert result.exit_code == 2
    assert re.fullmatch(r"omkl: http://127\.0\.0\.1:1/291.*is there a network\?\n", result.stderr)


def test_a_set_nobody_serves_cannot_be_fetched(shelves: tuple[Path, Path]):
    with pytest.raises(DownloadError, match=r"device cannot be fetched: put device\.csv"):
        fetch("device")


def test_data_fetch_goes_on_after_a_failure_and_says_so_at_the_end(server: Server, shelves: tuple[Path, Path]):
    server.answer = lambda handler: (
        give(airfoil_archive()) if "/291/" in handler.path else give(b"", code=404)
    )(handler)  # fmt: skip
    result = invoke("data", "fetch", "naval", "airfoil")
    assert result.exit_code == 2
    assert "404" in result.stderr
    assert result.stdout.strip() == str(shelves[1] / "airfoil.csv")


def test_addresses_are_uci_s_and_every_paper_set_has_one():
    assert set(PAPER) < set(ARCHIVES)
    for archive in ARCHIVES.values():
        assert re.fullmatch(rf"{re.escape(download.UCI)}/{archive.id}/[a-z+]+\.zip", archive.url)


# Converters: the original's shape in, ours out


def spreadsheet(rows: list[list[float | str]]) -> bytes:
    """A worksheet as Excel 2.1 wrote it, which is all that a test needs."""

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


def test_concrete_comes_out_of_its_spreadsheet_with_every_digit():
    pytest.importorskip("xlrd")
    rows = download.concrete(spreadsheet([["h"] * 9, [540.0, 0.0, 0.0, 162.0, 2.5, 1040.0, 676.0, 28.0, 79.98611076]]))
    assert rows[0][-1] == "target"
    assert [float(cell) for cell in rows[1]] == [540, 0, 0, 162, 2.5, 1040, 676, 28, 79.98611076]


def test_concrete_that_is_no_spreadsheet_is_refused():
    pytest.importorskip("xlrd")
    with pytest.raises(ValueError, match="not a spreadsheet"):
        download.concrete(b"cement,water\n1,2\n")


def test_naval_s_first_column_becomes_the_target_and_the_last_two_go():
    (header, row) = download.naval(b"   " + b"   ".join(f"{k}.0e+00".encode() for k in range(18)) + b" \n")
    assert len(header) == 16
    assert row == [f"{k}.0e+00" for k in (*range(1, 16), 0)]


def test_wine_keeps_its_columns_under_names_without_blanks():
    header, row = download.wine_white(b'"fixed acidity";"pH";"quality"\n7;3.1;6\n')
    assert (header, row) == (["fixed_acidity", "pH", "target"], ["7", "3.1", "6"])


def test_bias_leaves_out_station_date_and_the_lines_of_extremes():
    text = (
        "station,Date,Present_Tmax,lat,Solar radiation,Next_Tmax,Next_Tmin\n"
        "1,2013-06-30,28.7,37.6,5992,29.1,21.2\n2,2013-06-30,,37.6,5869,30.5,22.5\n,,20,37,4329,17,11\n"
    )
    header, *rows = download.bias(text.encode())
    assert header == ["Present_Tmax", "lat", "Solar_radiation", "target"]
    assert rows == [["28.7", "37.6", "5992", "21.2"], ["NaN", "37.6", "5869", "22.5"]]


@data_needed
@pytest.mark.parametrize(("name", "target_first"), [("airfoil", False), ("naval", True)])
def test_a_fetched_set_gives_the_same_numbers_as_the_file_at_hand(name: str, target_first: bool, server: Server):
    """The original is rebuilt from our file, served, fetched, and must come back the same."""
    mine = read_table(Path(DATA) / f"{name}.csv")
    columns = (mine.y, mine.X, np.ones((len(mine.y), 2))) if target_first else (mine.X, mine.y)
    whole = np.column_stack(columns)
    text = io.BytesIO()
    np.savetxt(text, whole, fmt="%.17g")
    member = ARCHIVES[name].member
    server.answer = give(zipped({f"__MACOSX/{member}": b"junk", f"some folder/{member}": text.getvalue()}))
    again = read_table(fetch(name))
    assert again.columns == mine.columns
    np.testing.assert_array_equal(again.X, mine.X)
    np.testing.assert_array_equal(again.y, mine.y)
