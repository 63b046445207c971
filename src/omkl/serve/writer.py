"""The queue of a model and the thread that empties it: check, log, learn, answer, in groups."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import orjson

from omkl.log import logger
from omkl.serve.commands import GROUP_ROWS, Command
from omkl.serve.limits import Refused
from omkl.serve.model import Answer, ServedModel

Deliver = Callable[[list[tuple[Command, Answer]]], None]
CHECKPOINT_ROWS = 50_000
CHECKPOINT_SECONDS = 300.0
INTERNAL = "internal error; the model is as it was before this request"
CLOSING = "the service is stopping, or the model is being removed"


class Writer:
    """Learns what is submitted, in order, and delivers the answers.

    Requests that came while others were learned form a group: they are written to the log at once, with one flush of
    the disk, and learned meanwhile. Nothing is delivered before it is both on the disk and learned.
    """

    def __init__(self, served: ServedModel, deliver: Deliver, every: int = CHECKPOINT_ROWS) -> None:
        self.served, self.every, self.limits = served, every, served.limits
        self._deliver = deliver
        self._queue: deque[Command] = deque()
        self._rows = 0
        self._changed = threading.Condition()
        self._closing = False
        self._checkpointed = time.monotonic()
        self._log_failed = False  # the last time
        self._log = ThreadPoolExecutor(1, thread_name_prefix="omkl-log")
        self.rollbacks = 0
        self._thread = threading.Thread(target=self._loop, name=f"omkl-{served.folder.name}", daemon=True)
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Queue a request, or refuse it where too many wait."""
        with self._changed:
            if self._closing:
                raise Refused(503, CLOSING)
            if len(self._queue) >= self.limits.queue or self._rows + command.size > self.limits.queue_rows:
                raise Refused(429, f"{len(self._queue):,} requests with {self._rows:,} rows wait to be learned; try "
                              "again later")  # fmt: skip
            self._queue.append(command)
            self._rows += command.size
            self._changed.notify()

    @property
    def waiting(self) -> tuple[int, int]:
        """Requests in the queue, and their rows."""
        return len(self._queue), self._rows

    def close(self) -> None:
        """Learn what is in the queue, write a checkpoint, and stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._log.shutdown()
        self.served.close()

    # The thread

    def _loop(self) -> None:
        while (group := self._next()) is not None:
            if group:
                answers = self._answers(group)
                if answers:
                    self._deliver(answers)
            try:
                self._checkpoint_if_due()
            except Exception as error:  # too little memory, for instance; requests are answered all the same
                self.served.checkpoint_failed(str(error) or type(error).__name__)

    def _next(self) -> list[Command] | None:
        """The requests to learn next; none of them after a while, None at the end."""
        with self._changed:
            if not self._queue and not self._closing:
                self._changed.wait(timeout=1.0)
            if not self._queue:
                return None if self._closing else []
            group = [self._queue.popleft()]
            rows, ids = group[0].size, {group[0].id}
            # the first rows of a model per key decide about its columns and labels: they are those of one request
            alone = not group[0].joins or self.served.model.learner is None
            while self._queue and not alone:
                following = self._queue[0]
                if not following.joins or rows + following.size > GROUP_ROWS or (following.id and following.id in ids):
                    break
                group.append(self._queue.popleft())
                rows += following.size
                ids.add(following.id)
            self._rows -= rows
            return group

    def _answers(self, group: list[Command]) -> list[tuple[Command, Answer]]:
        new: list[Command] = []
        out: list[tuple[Command, Answer]] = []
        for command in group:
            try:
                if (answer := self._repeated(command)) is not None:
                    out.append((command, answer))
                    continue
                self.served.check(command)
                new.append(command)
            except Exception as error:  # nothing was logged, nothing was learned
                out.append((command, self._failed(error)))
        return out + self._learned(new) if new else out

    def _repeated(self, command: Command) -> Answer | None:
        """The answer to a request that was learned before."""
        store = self.served.store
        known = None if command.id is None else store.known.get(command.id.id)
        if known is None or command.id is None:
            return None
        if known.digest != command.id.digest:
            raise Refused(409, f"another request had the id {command.id.id[:50]!r}; an id is for one request")
        found = store.answer(command.id.id)
        assert found is not None  # an earlier request has been learned when this one has its turn
        answer: Answer = orjson.loads(found)
        return answer

    def _learned(self, group: list[Command]) -> list[tuple[Command, Answer]]:
        """Log and learn requests; if one of them cannot be learned, each by itself."""
        served = self.served
        logged: Future[None] | None = None
        try:
            if served.unsound is not None:
                self._roll_back(served.unsound)
            seq = served.seq + 1
            if self._log_failed:  # then first the log: what it refuses again need not be taken back
                served.record(seq, group)
                self._log_failed = False
            else:
                logged = self._log.submit(served.record, seq, group)
        except Exception as error:
            return [(command, self._failed(error)) for command in group]
        try:
            return list(zip(group, served.apply(seq, group, None if logged is None else logged.result), strict=True))
        except Exception as error:
            failed = self._failed(error)
            self._log_failed = logged is not None and logged.exception() is not None
        served.unsound = seq
        try:
            self._roll_back(seq)
        except Exception as error:  # until it succeeds, before the next request
            self._failed(error)
        else:
            if len(group) > 1 and not self._log_failed:
                return [pair for command in group for pair in self._learned([command])]
        return [(command, failed) for command in group]

    def _failed(self, error: Exception) -> Refused:
        """What a client is told about an error, also about one that no check foresaw."""
        if isinstance(error, Refused):
            return error
        if isinstance(error, (ValueError, ArithmeticError, NotImplementedError)):
            return Refused(422, f"{str(error)[:300]}; nothing was learned from this request")
        logger.error("%s: internal error", self.served.folder.name, exc_info=error)
        return Refused(500, INTERNAL)

    def _roll_back(self, seq: int) -> None:
        """Bring the model back to what it was before a record that it could not learn."""
        self.rollbacks += 1
        self.served.store.remove(seq)
        self.served.finish_checkpoint(wait=True)
        self.served.recover()
        self.served.checkpoint(wait=True)  # so that the next time takes no longer than this
        self._checkpointed = time.monotonic()

    def _checkpoint_if_due(self) -> None:
        served = self.served
        served.finish_checkpoint(wait=False)
        due = served.rows_since >= self.every or served.store.bytes > self.limits.log // 4
        old = served.rows_since > 0 and time.monotonic() - self._checkpointed > CHECKPOINT_SECONDS
        if (due or old) and (served.rows_since or served.store.bytes):
            if time.monotonic() - self._checkpointed < 1.0:  # where they fail, not all the time
                return
            self._checkpointed = time.monotonic()
            served.checkpoint()
