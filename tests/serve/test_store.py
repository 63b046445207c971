"""The log: what is there after a crash, a full disk, damage and a clock that was set back."""

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from serving import learned_alone, some_rows

from omkl import persist
from omkl.errors import ModelFileError
from omkl.notices import Notices
from omkl.serve import checks
from omkl.serve.bodies import ARROW, JSON, LINES, answer_body, arrow_bytes, batch_of, json_bytes, parse_rows, read_arrow
from omkl.serve.commands import Command, decode, encode
from omkl.serve.handles import _joined
from omkl.serve.limits import Limits, Refused
from omkl.serve.model import CHECKPOINT, LOG, Answer, ServedModel
from omkl.serve.store import RequestId, Store
from omkl.serve.turns import Turns
from omkl.serve.writer import Writer
from omkl.stream.checkpoint import Checkpoint, Progress
from omkl.stream.options import Options
from omkl.stream.pieces import PIECE
from omkl.stream.raw import DataError
from omkl.stream.run import new_model

ROWS = some_rows(60)


def made(folder: Path, **options: Any) -> ServedModel:
    ServedModel.create(folder, new_model(Options(target="y", task="regression", **options), Notices()), None, 0, "test")
    return ServedModel(folder, Limits())


def learn(served: ServedModel, rows: list[dict[str, Any]], id: str | None = None) -> Answer:
    command = Command("rows", rows, id=None if id is None else RequestId(id, 0))
    served.check(command)
    return logged(served, [command])[0]


def logged(served: ServedModel, group: list[Command]) -> list[Answer]:
    """What a group learns, once it is in the log."""
    seq = served.seq + 1
    served.record(seq, group)
    return served.apply(seq, group)


def crash(served: ServedModel, to: Path) -> Path:
    """The folder as a crash would leave it at this moment."""
    shutil.copytree(served.folder, to)
    return to


def test_what_was_logged_is_learned_again(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    for k, row in enumerate(ROWS[:20]):
        learn(served, [row], f"id {k}")
    served.checkpoint(wait=True)
    answers = [learn(served, [row], f"id {k}") for k, row in enumerate(ROWS[20:40], 20)]
    again = ServedModel(crash(served, tmp_path / "copy"), Limits())
    assert again.replayed == 20
    assert again.rows == again.model.learned == 40
    assert again.to_bytes() == served.to_bytes() == persist.to_bytes(learned_alone(ROWS[:40])[0])
    for k in (0, 19, 20, 39):  # ids before and after the checkpoint are known
        assert again.store.answer(f"id {k}") == served.store.answer(f"id {k}")
    assert persist.to_bytes(again.model) == persist.to_bytes(served.model)
    assert answers[-1][0]["row"] == 40  # type: ignore[index]  # answers to rows are lists
    again.close()
    served.close()


def test_how_requests_are_grouped_changes_nothing(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    group = [Command("rows", [row]) for row in ROWS]
    for start, stop in ((0, 1), (1, 30), (30, 60)):
        for command in group[start:stop]:
            one.check(command)
        logged(one, group[start:stop])
    assert one.to_bytes() == persist.to_bytes(learned_alone(ROWS)[0])
    one.close()


@pytest.mark.parametrize("options", [{}, {"learner": "sfg-mkl"}, {"key": "order"}])
def test_how_rows_are_sent_changes_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    """Neither predictions nor the model and its history: recovery may learn in other pieces."""
    rows = [{**row, "order": k} for k, row in enumerate(some_rows(400, 3))]
    found = []
    for k, size in enumerate((23, 400)):
        served = made(tmp_path / f"{k}", **options)
        answers = [answer for start in range(0, 400, size) for answer in learn(served, rows[start : start + size])]
        found.append((answers, persist.to_bytes(Checkpoint(served.model, served.history, Progress({}, 0)))))
        served.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{}, {"key": "order"}, {"by": "town", "learner": "sfg-mkl"}])
def test_the_format_of_rows_changes_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    """Many rows in JSON, and tables of Arrow, come as columns; what is learned is that of the same rows."""
    rows = [{**row, "order": k, "even": k % 2 == 0} for k, row in enumerate(some_rows(700, 5))]
    if "key" in options:
        for k in range(10):  # rows that wait, and their targets
            rows[200 + k]["y"], rows[640 + k]["order"] = None, 200 + k
    formats = {
        "rows": lambda part: Command("rows", part),
        JSON: lambda part: parsed(orjson.dumps(part), JSON),
        LINES: lambda part: parsed(b"\n".join(map(orjson.dumps, part)), LINES),
        ARROW: lambda part: Command("rows", table=read_arrow(arrow_bytes(pa.Table.from_pylist(part)), Limits())),
    }
    found = []
    for name, made_of in formats.items():
        served = made(tmp_path / name.rpartition("/")[2], **options)
        answers = []
        for start, stop in ((0, 100), (100, 630), (630, 700)):
            command = made_of(rows[start:stop])
            assert (command.arrays is None) == (name == "rows")
            served.check(command)
            (answer,) = logged(served, [command])
            body = answer_body(answer, ARROW if name == ARROW else JSON, single=False)  # type: ignore[arg-type]  # answers to rows
            answers += flat(pa.ipc.open_stream(body).read_all().to_pylist() if name == ARROW else orjson.loads(body))
        recent = [{cell: value for cell, value in flat([row])[0].items() if cell != "row"} for _, row in served.recent]
        history = persist.to_bytes(Checkpoint(served.model, served.history, Progress({}, 0)))
        found.append((answers, recent, [row for row, _ in served.recent], history))
        served.close()
    assert found[0] == found[1] == found[2] == found[3]


def parsed(body: bytes, kind: str) -> Command:
    rows, columns, _ = parse_rows(body, kind, Limits())
    return Command("rows", rows, columns, raw=body, lines=kind == LINES)


def flat(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the ends of an interval as a list, and without cells that are empty."""
    out = []
    for answer in answers:
        low, high = answer.get("interval") or (None, None)
        cells = {"interval.lower": low, "interval.upper": high} | answer
        out.append({name: cell for name, cell in cells.items() if name != "interval" and cell is not None})
    return out


def test_predictions_have_their_turn_between_the_pieces_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some_rows(820, 3)
    served, learned = made(tmp_path / "m"), list[int]()
    learn(served, rows[:20])
    pause = Turns.pause

    def noted(self: Turns) -> None:
        self.__exit__()
        learned.append(served.model.learned)
        served.predict(batch_of(rows[:1], 1), (0.9,))
        self.__enter__()
        pause(self)

    monkeypatch.setattr(Turns, "pause", noted)
    learn(served, rows[20:720])
    assert {256, 512} <= set(learned)
    assert max(b - a for a, b in itertools.pairwise([20, *learned, 720])) <= PIECE
    learned.clear()
    learn(served, [{**row, "new": 1.0} for row in rows[720:]])  # a column begins: the model is not whole in between
    assert not learned
    assert served.to_bytes() == persist.to_bytes(
        learned_alone([*rows[:720], *({**r, "new": 1.0} for r in rows[720:])])[0]
    )
    served.close()


def test_answers_of_several_workers_have_the_order_of_the_rows() -> None:
    places = [[0, 3], [1, 2]]
    first = pa.table({"row": [1, 2], "prediction": [0.5, None]})
    second = pa.table({"row": [1, 2], "prediction": [1.5, 2.5]})
    wanted = [{"row": 1, "prediction": 0.5}, {"row": 1, "prediction": 1.5}, {"row": 2, "prediction": 2.5},
              {"row": 2, "prediction": None}]  # fmt: skip
    assert _joined(places, [first, second]).to_pylist() == wanted
    for found in ([first.to_pylist(), second], [first, second.to_pylist()], [first.to_pylist(), second.to_pylist()]):
        assert _joined(places, found) == wanted  # the others repeat what they had answered before


def test_an_answer_in_arrow_comes_again(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    answered: list[tuple[Command, Answer]] = []
    writer = Writer(served, answered.extend)
    for _ in range(2):
        writer.submit(Command("rows", table=pa.Table.from_pylist(ROWS), id=RequestId("again", 1)))
    writer.close()
    first, second = (answer_body(answer, ARROW, single=False) for _, answer in answered)  # type: ignore[arg-type]  # answers to rows
    assert served.rows == len(ROWS)
    assert pa.ipc.open_stream(first).read_all().equals(pa.ipc.open_stream(second).read_all())


def test_delayed_targets_are_learned_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{**row, "order": f"{k}"} for k, row in enumerate(some_rows(60, 3))]
    found, held = [], list[int]()
    run = ServedModel._run
    monkeypatch.setattr(ServedModel, "_run", lambda self, batch: held.append(len(batch.rows)) or run(self, batch))
    for most in (4, 1000):
        monkeypatch.setattr("omkl.serve.model.LABELS", most)
        held.clear()
        served = made(tmp_path / f"{most}", key="order")
        learn(served, rows[:20])
        learn(served, [{name: cell for name, cell in row.items() if name != "y"} for row in rows[20:]])
        labels = [{"key": row["order"], "target": row["y"]} for row in rows[20:50]]
        (answer,) = logged(served, [Command("labels", [*labels, {"key": "none", "target": 1.0}])])
        assert answer == {"learned": 30, "unknown": ["none"]}
        assert max(held[2:]) == min(most, 30)
        learn(served, rows[:3])
        found.append(persist.to_bytes(Checkpoint(served.model, served.history, Progress({}, 0))))
        served.close()
    assert found[0] == found[1]


def test_records_come_back_as_they_were() -> None:
    group = [Command("rows", [{"a": 1, "y": 2}], raw=b'{"a": 1, "y": 2}'),
             Command("rows", raw=b'{"a": {"b": 1}}\n', lines=True, targets=True, id=RequestId("x", 5))]  # fmt: skip
    first, second = decode(encode(group))
    assert first.rows == [{"a": 1, "y": 2}]
    assert (second.rows, second.targets, second.id) == ([{"a.b": 1}], True, ("x", 5))
    table = pa.table({"a": [1, 2]})
    (found,) = decode(encode([Command("rows", table=table)]))
    assert found.table is not None
    assert found.table.equals(table)
    assert decode(encode([Command("forget", key="k")]))[0].key == "k"
    assert decode(encode([Command("labels", [{"key": "1", "target": 2}])]))[0].rows == [{"key": "1", "target": 2}]


def test_columns_that_are_known_are_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    learn(served, [ROWS[0]])
    served.check(Command("rows", [ROWS[1]]))
    monkeypatch.setattr(checks, "check_columns", lambda *_: pytest.fail("the columns were accepted before"))
    served.check(Command("rows", [ROWS[2]]))
    served.close()


def test_an_error_before_the_log_is_an_answer(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    answered: list[tuple[Command, Answer]] = []
    writer = Writer(served, answered.extend)
    writer.submit(Command("rows", [{**ROWS[0], "odd": object()}]))  # no request can bring this
    writer.submit(Command("rows", [ROWS[0]]))
    writer.close()  # the thread has lived through it
    (_, refused), (_, learned) = answered
    assert isinstance(refused, Refused)
    assert learned[0]["row"] == 1  # type: ignore[index]  # answers to rows are lists


@pytest.mark.parametrize("cut", [1, 24, 2000, "garbage"])
def test_a_torn_last_record(tmp_path: Path, cut: int | str) -> None:
    served = made(tmp_path / "m")
    for row in ROWS[:10]:
        learn(served, [row])
    folder = crash(served, tmp_path / "copy")
    wal = folder / f"{LOG}-wal"
    content = wal.read_bytes()
    wal.write_bytes(content + b"\x07" * 5000 if isinstance(cut, str) else content[:-cut])
    again = ServedModel(folder, Limits())
    assert again.rows == (10 if isinstance(cut, str) else 9)  # a torn record was never acknowledged
    assert again.to_bytes() == persist.to_bytes(learned_alone(ROWS[: again.rows])[0])
    learn(again, [ROWS[again.rows]])
    again.close()
    served.close()


def test_damage_is_noticed(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    learn(served, [{**ROWS[0], "town": "here and nowhere else"}])
    served.store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    folder = crash(served, tmp_path / "copy")
    content = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(content.replace(b"here and nowhere", b"here and nowhara"))
    with pytest.raises(DataError, match="record 1 is damaged"):
        ServedModel(folder, Limits())
    (folder / CHECKPOINT).write_bytes(b"no")
    with pytest.raises(ModelFileError):
        ServedModel(folder, Limits())
    served.close()


def test_one_service_for_a_folder(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    with pytest.raises(DataError, match="another server is using it"):
        ServedModel(tmp_path / "m", Limits())
    served.close()


def test_a_request_that_cannot_be_learned_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    learn(served, ROWS[:10])
    answered: list[tuple[Command, Answer]] = []
    apply = ServedModel.apply

    def fails(self: ServedModel, seq: int, group: list[Command], logged: Any = None) -> list[Answer]:
        out = apply(self, seq, group, logged)
        if any(command.rows[0].get("a") == 0.125 for command in group):
            raise ValueError("the model cannot learn this")  # after it has changed
        return out

    monkeypatch.setattr(ServedModel, "apply", fails)
    writer = Writer(served, answered.extend)
    group = [Command("rows", [row]) for row in (ROWS[10], {**ROWS[11], "a": 0.125}, ROWS[12])]
    answered += writer._learned(group)
    by_command = {id(command): answer for command, answer in answered}
    good, bad, other = (by_command[id(command)] for command in group)
    assert isinstance(bad, Refused)
    assert bad.status == 422
    assert (good[0]["row"], other[0]["row"]) == (11, 12)  # type: ignore[index]  # answers to rows are lists
    assert served.to_bytes() == persist.to_bytes(learned_alone([*ROWS[:11], ROWS[12]])[0])
    assert writer.rollbacks == 2  # the group, and the request by itself
    writer.close()


def test_ids_and_answers_are_bounded(tmp_path: Path) -> None:
    store = Store(str(tmp_path / LOG), Limits(ids=5, answers=1000))
    for k in range(1, 21):
        store.append(k, b"x", [(0, RequestId(f"{k}", k))])
        store.keep_answer(k, RequestId(f"{k}", k), b"a" * 10)
    assert list(store.known) == [f"{k}" for k in range(16, 21)]
    store.append(21, b"x", [(0, RequestId("21", 21))])
    store.keep_answer(21, RequestId("21", 21), b"a" * 2000)
    store.append(22, b"x", [(0, RequestId("22", 22))])
    assert "20" not in store.known
    store.truncate(22)
    assert store.bytes == 0
    store.close()
    again = Store(str(tmp_path / LOG), Limits(ids=5, answers=1000))
    assert set(again.known) <= {"21", "22"}
    again.close()


def test_an_id_keeps_its_answer_where_a_checkpoint_has_its_record(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    answer = learn(served, ROWS[:2], "only")
    truncate, served.store.truncate = served.store.truncate, lambda seq: None  # type: ignore[method-assign]  # a log that cannot be cut
    served.checkpoint(wait=True)  # and a crash before the log is shortened
    again = ServedModel(crash(served, tmp_path / "copy"), Limits())
    assert again.replayed == 0
    assert again.store.answer("only") == json_bytes(answer)
    again.close()
    truncate(served.seq)
    served.close()


def test_ids_that_are_forgotten_before_their_record(tmp_path: Path) -> None:
    served = made(tmp_path / "m")
    served.store.limits = limits = Limits(ids=2)
    for k, row in enumerate(ROWS[:6]):
        learn(served, [row], f"id {k % 5}")  # the first comes again once it is forgotten
    again = ServedModel(crash(served, tmp_path / "copy"), limits)
    assert again.rows == 6
    assert list(again.store.known)[-2:] == ["id 4", "id 0"]
    assert again.store.answer("id 0") == served.store.answer("id 0")
    again.close()
    served.close()


def test_a_log_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    answered: list[tuple[Command, Answer]] = []
    writer = Writer(served, answered.extend)
    assert not isinstance(writer._learned([Command("rows", ROWS[:10])])[0][1], Refused)
    before = served.to_bytes()
    append, full = Store.append, Refused(507, "the disk is full")

    def fails(*_: object) -> None:
        raise full

    monkeypatch.setattr(Store, "append", fails)
    group = [Command("rows", [row]) for row in ROWS[10:12]]
    assert [answer for _, answer in writer._learned(group)] == [full, full]
    assert served.to_bytes() == before  # it had been learned while it was written
    assert writer.rollbacks == 1
    assert writer._learned(group[:1])[0][1] is full
    assert writer.rollbacks == 1  # while the log fails, nothing is learned before it is written
    monkeypatch.setattr(Store, "append", append)
    assert [answer[0]["row"] for _, answer in writer._learned(group)] == [11, 12]  # type: ignore[index]  # answers to rows are lists
    assert [answer[0]["row"] for _, answer in writer._learned([Command("rows", [ROWS[12]])])] == [13]  # type: ignore[index]  # answers to rows are lists
    assert served.to_bytes() == persist.to_bytes(learned_alone(ROWS[:13])[0])
    writer.close()


def test_what_cannot_be_taken_back_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    learn(served, ROWS[:10])
    answered: list[tuple[Command, Answer]] = []
    writer = Writer(served, answered.extend)
    apply, remove = ServedModel.apply, Store.remove

    def fails(self: ServedModel, *args: Any) -> list[Answer]:
        apply(self, *args)
        raise ValueError("the model cannot learn this")

    def full(*_: object) -> None:
        raise Refused(507, "the disk is full")

    monkeypatch.setattr(ServedModel, "apply", fails)
    monkeypatch.setattr(Store, "remove", full)
    checkpoint = (served.folder / CHECKPOINT).read_bytes()
    for row in ROWS[10:12]:  # of these the second finds the model as the first has left it
        writer.submit(Command("rows", [row]))
        _wait_for(writer)
    served.checkpoint(wait=True)
    assert (served.folder / CHECKPOINT).read_bytes() == checkpoint  # what is half learned is not kept
    monkeypatch.setattr(ServedModel, "apply", apply)
    writer.submit(Command("rows", [ROWS[10]]))
    _wait_for(writer)
    monkeypatch.setattr(Store, "remove", remove)
    writer.submit(Command("rows", [ROWS[10]]))
    writer.close()
    *refused, (_, last) = answered
    assert [answer.status for _, answer in refused if isinstance(answer, Refused)] == [422, 507, 507]
    assert last[0]["row"] == 11  # type: ignore[index]  # answers to rows are lists
    again = ServedModel(served.folder, Limits())
    assert again.to_bytes() == persist.to_bytes(learned_alone(ROWS[:11])[0])
    again.close()


def test_a_checkpoint_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    answered: list[tuple[Command, Answer]] = []
    writer = Writer(served, answered.extend, every=1)

    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(persist, "to_bytes", fails)
    writer._checkpointed = -1e9
    for row in ROWS[:2]:
        writer.submit(Command("rows", [row]))
        _wait_for(writer)
    monkeypatch.undo()
    assert [answer[0]["row"] for _, answer in answered] == [1, 2]  # type: ignore[index]  # answers to rows are lists
    assert served.failed_checkpoints == 1
    writer.close()


def _wait_for(writer: Writer) -> None:
    """Until the queue is empty."""
    deadline = time.monotonic() + 10
    while writer.waiting[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)


def test_the_log_is_bounded_where_checkpoints_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    served.store.limits = Limits(log=3000)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(persist, "write_atomically", full)
    while served.store.bytes < 2500:
        learn(served, ROWS[:1])
        served.checkpoint(wait=True)
    with pytest.raises(Refused, match="checkpoints cannot be written") as refused:
        learn(served, ROWS)
    assert refused.value.status == 507
    assert served.failed_checkpoints > 1
    monkeypatch.undo()
    served.checkpoint(wait=True)
    learn(served, [ROWS[0]])
    served.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte, where this process may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    served = made(small_disk / "m", learner="sfg-mkl", parameters={"n_features": 5})
    learn(served, ROWS[:30])
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    learned = 30
    with contextlib.suppress(Refused):
        while True:
            learn(served, ROWS[:1])
            learned += 1
    before = served.to_bytes()
    with pytest.raises(Refused, match="the disk is full") as refused:
        learn(served, ROWS[:1])
    assert refused.value.status == 507
    assert served.to_bytes() == before
    predictions = served.predict(_batch(ROWS[:2]), (0.9,))
    assert len(predictions.rows) == 2
    filler.unlink()
    learn(served, ROWS[:1])
    rows = served.rows
    assert rows == learned + 1
    served.close()
    again = ServedModel(small_disk / "m", Limits())
    assert again.rows == rows
    again.close()


def _batch(rows: list[dict[str, Any]]) -> Any:
    return batch_of(rows, 1)


def test_a_clock_that_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = made(tmp_path / "m")
    learn(served, ROWS[:10], "before")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    learn(served, ROWS[10:20], "after")
    served.checkpoint(wait=True)
    learn(served, ROWS[20:30])
    os.utime(served.folder / CHECKPOINT, (0, 0))
    again = ServedModel(crash(served, tmp_path / "copy"), Limits())
    assert again.to_bytes() == persist.to_bytes(learned_alone(ROWS[:30])[0])
    assert list(again.store.known) == ["before", "after"]
    again.close()
    served.close()
