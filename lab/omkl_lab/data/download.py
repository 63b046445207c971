"""Downloads a data set from UCI, checks it and converts it to CSV; the file is written atomically."""

import csv
import http.client
import io
import socket
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from omkl._version import __version__
from omkl.persist import write_atomically
from omkl_lab.data.sets import SETS, cache, find, how_to_get
from omkl_lab.data.table import TARGET

UCI = "https://archive.ics.uci.edu/static/public"
LIMIT = 64 * 1024 * 1024  # bytes, of the archive and of the file in it
TRIES = 3
PAUSE = 1.0  # seconds before the second try, twice that before the third
TIMEOUT = 30.0  # seconds without a byte

Rows = list[list[str]]


class Archive(NamedTuple):
    """Where UCI serves a data set, and how its file is converted. The only place where addresses are given."""

    id: int
    title: str  # as in the address, with spaces
    member: str
    convert: Callable[[bytes], Rows]  # header and rows, the target last

    @property
    def url(self) -> str:
        return f"{UCI}/{self.id}/{self.title.replace(' ', '+')}.zip"


class DownloadError(OSError):
    """A data set could not be downloaded."""


# Converters: values are kept as written in the file


def airfoil(data: bytes) -> Rows:
    names = "frequency_hz angle_of_attack_deg chord_length_m free_stream_velocity_mps"
    return [[*names.split(), "suction_side_displacement_thickness_m", TARGET], *words(data)]


def concrete(data: bytes) -> Rows:
    try:
        import xlrd
    except ImportError:
        raise DownloadError("reading Concrete_Data.xls needs xlrd: pip install xlrd") from None
    names = "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age_days"
    try:
        sheet = xlrd.open_workbook(file_contents=data, logfile=io.StringIO()).sheet_by_index(0)
    except (xlrd.XLRDError, IndexError) as error:
        raise ValueError(f"not a spreadsheet ({error})") from None
    return [[*names.split(), TARGET], *([repr(x) for x in sheet.row_values(r)] for r in range(1, sheet.nrows))]


def naval(data: bytes) -> Rows:
    """18 columns: the lever position, 15 measurements, two decay coefficients."""
    names = (
        "ship_speed gt_shaft_torque gt_rate_of_revolutions gas_generator_rate_of_revolutions "
        "starboard_propeller_torque port_propeller_torque hp_turbine_exit_temperature "
        "gt_compressor_inlet_air_temperature gt_compressor_outlet_air_temperature hp_turbine_exit_pressure "
        "gt_compressor_inlet_air_pressure gt_compressor_outlet_air_pressure gt_exhaust_gas_pressure "
        "turbine_injection_control fuel_flow"
    )
    return [[*names.split(), TARGET], *([*row[1:16], *row[:1]] for row in words(data))]


def wine_white(data: bytes) -> Rows:
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig")), delimiter=";")
    return [[*(name.replace(" ", "_") for name in header[:-1]), TARGET], *(row for row in rows if row)]


def bias(data: bytes) -> Rows:
    """Without station, date, the other target, and the last lines, which are column minima and maxima."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    try:
        first, last, target = (header.index(name) for name in ("Present_Tmax", "Solar radiation", "Next_Tmin"))
    except ValueError as error:
        raise ValueError(f"no such column: {error}") from None
    kept = [row for row in rows if len(row) == len(header) and row[0].strip().lower() not in ("", "nan")]
    return [
        [*(name.replace(" ", "_") for name in header[first : last + 1]), TARGET],
        *([cell.strip() or "NaN" for cell in [*row[first : last + 1], row[target]]] for row in kept),
    ]


def words(data: bytes) -> Rows:
    return [line.split() for line in data.decode("ascii").splitlines() if line.strip()]


ARCHIVES = {
    "airfoil": Archive(291, "airfoil self noise", "airfoil_self_noise.dat", airfoil),
    "concrete": Archive(165, "concrete compressive strength", "Concrete_Data.xls", concrete),
    "naval": Archive(316, "condition based maintenance of naval propulsion plants", "data.txt", naval),
    "wine_white": Archive(186, "wine quality", "winequality-white.csv", wine_white),
    "bias": Archive(
        514, "bias correction of numerical prediction model temperature forecast", "Bias_correction_ucl.csv", bias
    ),
}


def fetch(name: str, tick: Callable[[int, int | None], object] = lambda done, total: None) -> Path:
    """Download a data set into the user's cache and return its path; `tick` gets the bytes so far and in total."""
    if name not in ARCHIVES:
        raise DownloadError(f"{find(name).name} cannot be downloaded: {how_to_get(name)}")
    archive = ARCHIVES[name]
    text = our_csv(name, archive, member(archive, download(archive.url, tick)))
    path = cache() / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def download(url: str, tick: Callable[[int, int | None], object]) -> bytes:
    """All bytes at `url`; temporary errors are retried."""
    for attempt in range(1, TRIES + 1):
        try:
            return received(url, tick)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise DownloadError(f"{url}: the server responded {error.code} {error.reason}") from None
            problem = f"the server responded {error.code} {error.reason}"
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            problem = str(getattr(error, "reason", None) or error or type(error).__name__)
            reason = getattr(error, "reason", None)
            if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
                raise DownloadError(f"{url}: {problem}; is there a network?") from None
        if attempt < TRIES:
            time.sleep(PAUSE * attempt)
    raise DownloadError(f"{url}: {problem}, {TRIES} times; is there a network?")


def received(url: str, tick: Callable[[int, int | None], object]) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": f"omkl/{__version__}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        data = bytearray()
        while len(data) <= LIMIT and (total or 0) <= LIMIT:
            piece = response.read(64 * 1024)
            if not piece:
                if total is not None and len(data) < total:
                    raise ConnectionError(f"the connection ended after {len(data)} of {total} bytes")
                return bytes(data)
            data += piece
            tick(len(data), total)
    raise DownloadError(f"{url}: larger than {LIMIT} bytes, more than any known data set; inspect it before use")


def member(archive: Archive, data: bytes) -> bytes:
    """The data file in the archive, in any folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            inside = [
                entry for entry in bundle.infolist()
                if entry.filename.rsplit("/", 1)[-1] == archive.member and not entry.filename.startswith("__MACOSX")
            ]  # fmt: skip
            if not inside:
                raise DownloadError(
                    f"{archive.url}: the archive has no {archive.member}, only {', '.join(bundle.namelist()[:9])}"
                )
            with bundle.open(inside[0]) as file:
                content = file.read(LIMIT + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise DownloadError(f"{archive.url}: not a zip archive ({error})") from None
    if len(content) > LIMIT:
        raise DownloadError(f"{archive.url}: {archive.member} is larger than {LIMIT} bytes")
    return content


def our_csv(name: str, archive: Archive, data: bytes) -> str:
    """The data as CSV text, after checking rows, columns and cells."""
    try:
        rows = archive.convert(data)
    except ValueError as error:  # UnicodeDecodeError is one
        raise DownloadError(f"{archive.url}: {archive.member} has an unexpected format ({error})") from None
    known = SETS[name]
    expected = (known.rows + known.gaps, known.features + 1)
    for number, row in enumerate(rows):
        if len(row) != expected[1]:
            raise DownloadError(f"{archive.url}: {len(row)} columns in row {number}, expected {expected[1]}")
        for cell in row if number else []:
            try:
                float(cell)
            except ValueError:
                raise DownloadError(f"{archive.url}: {cell[:40]!r} in row {number}, expected a number") from None
    if len(rows) - 1 != expected[0]:
        raise DownloadError(f"{archive.url}: {len(rows) - 1} rows in {archive.member}, expected {expected[0]}")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
