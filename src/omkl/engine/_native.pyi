from collections.abc import Hashable, Mapping

from omkl.arrays import Index, Matrix, Vector

class Memory:
    """A state, bound to the arrays of the Python state that it was made from."""

    @property
    def t(self) -> int: ...
    @property
    def unused(self) -> int: ...
    def supply(self, uniforms: Vector) -> None: ...

class Engine:
    """A problem, compiled for one instruction set."""

    fixed_size: bool
    can_be_packed: bool
    learns_several: bool
    def __init__(self, problem: object, isa: str) -> None: ...
    def memory(self, state: object) -> Memory: ...
    def numbers(self, memory: Memory) -> dict[str, int | float]: ...
    def has_room(self, memory: Memory) -> bool: ...
    def extra(self, memory: Memory, out: Vector) -> None: ...
    def predict(self, memory: Memory, x: Vector) -> float: ...
    def predict_rows(self, memory: Memory, X: Matrix, out: Vector) -> None: ...
    def learn(self, memory: Memory, x: Vector, y: float, weight: float) -> int: ...
    def run(
        self,
        memory: Memory,
        X: Matrix,
        y: Vector,
        uniforms: Vector,
        weight: Vector | None,
        out: Vector,
        extra: Vector | None = None,
    ) -> tuple[int, int]: ...

    # only where learns_several is true
    def run_several(
        self,
        memories: list[Memory],
        X: Matrix,
        y: Matrix,
        uniforms: Matrix,
        weight: Vector | None,
        out: Matrix,
        extra: Matrix | None,
        progress: Index,
    ) -> None: ...

    # only where fixed_size is true
    def record(self) -> tuple[int, list[tuple[str, str, int, tuple[int, ...]]]]: ...
    def run_keys(
        self,
        blocks: list[Matrix],
        slots: Index,
        starts: Index,
        order: Index,
        X: Matrix,
        y: Vector,
        scaled: bool,
        out: Vector,
    ) -> int: ...
    def predict_keys(
        self, blocks: list[Matrix], slots: Index, starts: Index, order: Index, X: Matrix, scaled: bool, out: Vector
    ) -> None: ...

    # only where can_be_packed is true
    def pack(self, memory: Memory, inputs: Vector, target: Vector, words: Index) -> Vector: ...
    def unpack(self, packed: Vector, memory: Memory, inputs: Vector, target: Vector, words: Index) -> None: ...
    def run_packed(
        self, keys: list[Vector], starts: Index, order: Index, X: Matrix, y: Vector, scaled: bool, out: Vector
    ) -> tuple[int, int, list[tuple[int, Vector]]]: ...
    def predict_packed(
        self, keys: list[Vector], starts: Index, order: Index, X: Matrix, scaled: bool, out: Vector
    ) -> None: ...

engines: Mapping[str, type[Engine]]  # by the name of the algorithm
compiler: str

def supported() -> list[str]: ...
def first_not_finite(a: Matrix | Vector) -> int: ...
def first_above(a: Matrix | Vector, limit: float) -> int: ...
def standardise_rows(stats: Matrix, X: Matrix, out: Matrix) -> None: ...
def standardise_each(stats: Matrix, spare: Matrix, X: Matrix, out: Matrix) -> None: ...
def standardise_targets(stats: Matrix, y: Vector, out: Vector, shift: Vector, scale: Vector) -> None: ...
def standardise_target(stats: Matrix, spare: Matrix, y: float) -> float: ...
def target_map(stats: Matrix) -> tuple[float, float]: ...
def gather(row: dict[Hashable, float], names: tuple[Hashable, ...], missing: float, out: Vector) -> int: ...
def gather_indexed(row: dict[Hashable, float], index: dict[Hashable, int], missing: float, out: Vector) -> int: ...
def gather_scaled(
    row: dict[Hashable, float], names: tuple[Hashable, ...], stats: Matrix, spare: Matrix, raw: Vector, out: Vector
) -> int: ...
def id_rows(
    numbers: Vector,
    X: Matrix,
    codes: Matrix | None,
    weight: Vector | None,
    farthest: float,
    scaling: Matrix,
    overall: Vector,
    slots: Index,
    places: Index,
    records: Matrix,
    used: int,
    out: Matrix,
) -> int: ...
