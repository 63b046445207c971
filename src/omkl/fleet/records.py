"""The records of many keys as one array for a file, and back with all of them checked."""

import numpy as np

from omkl.arrays import Matrix
from omkl.estimators.core import check_statistics
from omkl.fleet.storage import RecordStorage
from omkl.persist import demand


def copied(storage: RecordStorage, count: int) -> Matrix:
    """The first `count` models, a row each."""
    return np.concatenate([*storage._blocks, np.empty((0, storage._size))])[:count]


def put(storage: RecordStorage, records: Matrix) -> None:
    """Fill the first slots, which are free. What is between the parts of a record is not taken."""
    demand(records.ndim == 2 and records.shape[1] == storage._size, "records of another size")
    scalers, State = storage._template.core.scalers(), storage._algorithm.State
    for slot, source in enumerate(np.ascontiguousarray(records, dtype=np.float64)):
        values = {name: storage._part(source, name) for name in storage._parts}
        state = [values[name] if values[name].ndim else values[name].item() for name in State._fields]
        storage._algorithm.check_state(storage._problem, State._make(state))
        for name, scaler in scalers.items():
            check_statistics(values[name].reshape(scaler.stats.shape).astype(np.float64))
        demand(values["evaluations"].item() >= 0, "the number of evaluations must be a count")
        storage._fill(storage._record(slot), values)
