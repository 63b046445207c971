"""Data sets: names, folders, and reading tables."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from data_sets import data_needed
from lab_command import invoke

from omkl_lab.data.sets import EMBEDDED, SETS, DataSetNotFoundError, load, locate
from omkl_lab.data.table import BadTableError, read_table

# Reading


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("a,b\n1,2\n", "line 1, column 2", "'target'"),
        ("target\n1\n", "line 1, column 1", "at least one feature"),
        ("", "line 1, column 1", "empty line"),
        ("a,target\n", "line 2, column 1", "the file ends"),
        ("a,b,target\n1,2,3\n1,2\n", "line 3, column 3", "the target is missing"),
        ("a,b,target\n1,2,3\n1,2,\n", "line 3, column 3 (target)", "empty cell"),
        ("a,b,target\n1,2,3\n1,2,3,4\n", "line 3, column 4", "expected 3 cells, got 4"),
        ("a,b,target\n1,2,3,4\n5,6,7,8\n", "line 2, column 4", "expected 3 cells, got 4"),
        ("a,b,target\n1,red,3\n", "line 2, column 2 (b)", "'red'"),
        ("a,b,target\n1,2,3\n\n1,NaN,3\n", "line 4, column 2 (b)", "'NaN'"),
        ("a,b,target\n1,2,inf\n", "line 2, column 3 (target)", "'inf'"),
    ],
)
def test_a_bad_table_is_refused_with_file_line_and_column(tmp_path: Path, text: str, where: str, message: str):
    path = table(tmp_path, text)
    with pytest.raises(BadTableError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}, {where}: ")
    assert message in str(caught.value)


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


# Names and folders


def test_the_own_folder_comes_before_the_cache(data_folders: tuple[Path, Path]):
    own, cache = data_folders
    cache.mkdir(parents=True)
    assert locate("airfoil") is None
    (cache / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    assert locate("airfoil") == cache / "airfoil.csv"
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    assert locate("airfoil") == own / "airfoil.csv"


def test_a_missing_data_set_is_reported_with_how_to_get_it(data_folders: tuple[Path, Path]):
    with pytest.raises(DataSetNotFoundError, match=r"omkl-lab data fetch naval`, or put naval\.csv .* \$OMKL_DATA"):
        load("naval")
    with pytest.raises(DataSetNotFoundError, match=r"put twitter\.csv .*cannot be downloaded.*JMLR"):
        load("twitter")


def test_an_unknown_name_is_reported_with_the_known_ones():
    with pytest.raises(ValueError, match=f"unknown data set 'arfoil'; choose from {', '.join(SETS)}"):
        locate("arfoil")


def test_labels_stay_labels_and_others_are_refused(data_folders: tuple[Path, Path]):
    own, _ = data_folders
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
        pytest.skip(f"data set {name} not found")
    path, known = locate(name), SETS[name]
    several = path is not None and path.parent.name == "real" and known.task == "classification"  # not -1 and 1
    X = read_table(path).X if several else load(name).X
    assert X.shape == (known.rows, known.features)


def test_data_list_shows_every_set_and_where_it_is(data_folders: tuple[Path, Path]):
    own, _ = data_folders
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    lines = {line.split()[0]: line for line in invoke("data", "list").output.splitlines() if line.strip()}
    assert set(SETS) <= set(lines)
    assert "not found" not in lines["airfoil"]
    assert "not found; see data fetch" in lines["naval"]
    assert "not found; add it by hand" in lines["twitter"]
    assert "embedded" in lines["mixture"]


def test_data_path_prints_one_line_or_how_to_get_the_data_set(data_folders: tuple[Path, Path]):
    own, _ = data_folders
    (own / "airfoil.csv").write_text("a,target\n1,2\n3,4\n")
    path = invoke("data", "path", "airfoil")
    assert path.output == f"{own / 'airfoil.csv'}\n"
    missing = invoke("data", "path", "naval")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr.startswith("omkl: data set naval not found: run `omkl-lab data fetch naval`")
