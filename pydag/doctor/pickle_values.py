# SPDX-License-Identifier: Apache-2.0
"""Reads the values of a pickle of torch's without calling, importing or setting anything.

A pickle is a program. Here its instructions make containers, numbers and text, and a call makes a
value only if `pickle_calls` knows the function. Any other call, class or function makes an
`Opaque`, which has its name and can do nothing.
"""

import functools
import io
import pickle
import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from .finding import shown
from .pickle_calls import ITEM, KNOWN, SIZED, STORAGES, Calls, is_size, name_of
from .pickle_objects import Dict, Frozen, Global, LongValue, Opaque, PickleError, Storage, Tensor

# What all values may take, in bytes, roughly; a tensor of a state dict takes 1700 with all that it
# is made of. What a call goes through costs as much.
_MOST = 208 << 20
_INSTRUCTION, _CHARACTER, _CONTAINER, _TENSOR = 24, 4, 96, 256
_LONGEST = 10_000  # bytes of a text, or of bytes, that can be a name
_WIDEST = 16  # bytes of an integer
_LONGEST_NAME = 500  # characters of the name of a class or function
_FIRST_PLACES = 256  # of the memo; those behind them are filled in order
_EMPTY = object()
_NEWEST = 5  # protocol


class Pickled(NamedTuple):
    """The content of a pickle."""

    root: Any
    beside: list[Opaque]  # what containers and tensors got besides their items
    foreign: tuple[str, ...]  # what it names besides tensors, storages and builtin containers
    size: int  # in bytes


def read_pickle(data: bytes) -> Pickled:
    """Reads a pickle.

    Raises:
        PickleError: It is malformed, or holds more than can be read.
    """
    machine = _Machine(data)
    try:
        root = machine.run()
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        text = shown(f"{type(error).__name__}: {error}")
        raise PickleError(f"malformed pickle: {text}") from None
    return Pickled(root, machine.calls.beside, tuple(machine.calls.foreign), len(data))


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self, data: bytes) -> None:
        self.stream, self.size = io.BytesIO(data), len(data)
        self.protocol = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # the height of the stack at each mark
        self.memo: list[Any] = [_EMPTY] * _FIRST_PLACES
        self.in_memo = 0
        self.calls = Calls(self.spend)
        self._storages: dict[str, Storage] = {}  # by the key without case, as torch finds records
        self._spent = 0

    def run(self) -> Any:
        stream, table = self.stream, _TABLE
        for code in iter(functools.partial(stream.read, 1), pickle.STOP):
            self._spent += _INSTRUCTION
            if self._spent > _MOST:
                self.spend(0)
            if code not in table:
                name = _OPCODES[code].name if code in _OPCODES else ascii(code)
                raise PickleError(f"the pickle has the instruction {name}, which torch doesn't use")
            read, step = table[code]
            step(self) if read is None else step(self, read(stream))
        if len(self.stack) != 1 or self.marks:
            raise PickleError("malformed pickle: it must leave one value")
        return self.stack.pop()

    def spend(self, size: int) -> None:
        self._spent += size
        if self._spent > _MOST:
            raise PickleError("the pickle holds more values than can be read in little memory")

    def begin(self, protocol: int) -> None:
        if protocol > _NEWEST:
            raise PickleError(f"the pickle has the protocol {protocol}, an unknown one")
        self.protocol = protocol

    def frame(self, size: int) -> None:
        if size > self.size - self.stream.tell():
            raise PickleError("malformed pickle: a frame goes beyond its end")

    def literal(self, value: Any) -> None:
        """Pushes text, bytes or a long number. What is long can't be the name of anything."""
        is_number = type(value) is int
        size = value.bit_length() // 8 if is_number else len(value)
        self.spend(_CHARACTER * size)
        self.stack.append(LongValue() if size > (_WIDEST if is_number else _LONGEST) else value)

    def push(self, value: Any) -> None:
        """Pushes a new value."""
        kind = type(value)
        if kind is Tensor:
            self.spend(_TENSOR + 2 * ITEM * len(value.shape))
        else:
            items = value.contents if kind is Opaque else value if kind in SIZED else ()
            self.spend(_CONTAINER + ITEM * len(items))
        self.stack.append(value)

    def popped(self, count: int | None = None) -> list[Any]:
        """Takes away the topmost values; without a count those since the last mark, and it."""
        floor = self.marks[-1] if self.marks else 0
        begin = self.marks.pop() if count is None else len(self.stack) - count
        if begin < floor:
            raise PickleError("malformed pickle: a value is missing")
        values = self.stack[begin:]
        del self.stack[begin:]
        return values

    def top(self) -> Any:
        if self.marks and self.marks[-1] == len(self.stack):
            raise PickleError("malformed pickle: a mark where a value is wanted")
        return self.stack[-1]

    def drop(self, count: int | None = None) -> None:
        """Takes away values, or a mark alone. What calls did that aren't understood stays done."""
        if self.marks and self.marks[-1] == len(self.stack):
            count = None
        self.calls.beside += [value for value in self.popped(count) if type(value) is Opaque]

    def put(self, index: int) -> None:
        if index > len(self.memo):
            raise PickleError("malformed pickle: it leaves out places of the memo")
        if index == len(self.memo):
            self.memo.append(_EMPTY)
        self.in_memo += self.memo[index] is _EMPTY
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        if self.memo[index] is _EMPTY:
            raise PickleError("malformed pickle: a place of the memo is empty")
        self.stack.append(self.memo[index])

    def find(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise PickleError("malformed pickle: a name that is no text")
        if len(module) + len(name) > _LONGEST_NAME:
            raise PickleError("malformed pickle: a long name of a class or function")
        if self.protocol < 3:  # such a pickle has the names of Python 2
            here = IMPORT_MAPPING.get(module, module), name
            module, name = NAME_MAPPING.get((module, name), here)
        full = f"{module}.{name}"
        self.push(Global(full) if full in KNOWN else Opaque(self.calls.note(full)))

    def create(self, cls: Any, arguments: Any, *more: Any) -> None:
        """An object of a class, without a call of its `__init__`."""
        is_call = type(cls) is Global and arguments == () and not more
        found = Opaque(name_of(cls), cls, arguments, *more)
        self.push(self.calls.result_of(cls, ()) if is_call else found)

    def instance(self, names: tuple[str, str] | None = None) -> None:
        values = self.popped()
        if names is not None:
            self.find(*names)
            values.insert(0, self.stack.pop())
        self.push(self.calls.result_of(values[0], tuple(values[1:])))

    def build(self) -> None:
        """Sets attributes."""
        state, owner = *self.popped(1), self.top()
        if type(owner) is Opaque:
            owner.contents.append(state)
        elif type(owner) is Dict and type(state) is Dict:
            self.calls.keep("the attributes of a dict", state)
        else:
            raise PickleError(f"malformed pickle: attributes for {name_of(owner)}")

    def persistent(self) -> None:
        (found,) = self.popped(1)
        if type(found) is not tuple or len(found) != 5 or found[0] != "storage":
            raise PickleError("malformed pickle: a persistent id that is no storage's")
        _, kind, key, device, size = found
        if type(key) is not str or not is_size(size):
            raise PickleError("malformed pickle: a storage without a key or a size")
        if type(device) is not str or device == "meta":
            raise PickleError(f"malformed pickle: the storage {shown(key)} is on no device")
        name = name_of(kind)
        storage = Storage(key, STORAGES.get(name), size)
        if type(kind) is Opaque:
            self.push(Opaque(name, storage))
            return
        if name not in STORAGES:
            raise PickleError("malformed pickle: a storage of an unknown kind")
        if self._storages.setdefault(key.lower(), storage) != storage:
            raise PickleError(f"malformed pickle: the storage {shown(key)} has two types or sizes")
        self.push(storage)

    def add(self, kind: type[list[Any]], items: list[Any]) -> None:
        """Adds items to a list, a dict or an object."""
        container: Any = self.top()
        if type(container) is Opaque:
            container.contents.extend(items)
        elif type(container) is kind:
            container.extend(items if kind is list else _pairs(items))
        else:
            raise PickleError(f"malformed pickle: items for what is no {kind.__name__.lower()}")


def _pairs(items: list[Any]) -> Dict:
    if len(items) % 2:
        raise PickleError("malformed pickle: a key without a value")
    return Dict(items)


def _names(stream: IO[bytes]) -> tuple[str, str]:
    """A module and a name in it, where `pickletools` would take a backslash for an escape."""
    return stream.readline()[:-1].decode(), stream.readline()[:-1].decode()


_Instruction = Callable[..., None]


def _constant(value: Any = None) -> _Instruction:
    """Pushes what takes no memory: this value, or the argument of the instruction."""
    return lambda machine, argument=value: machine.stack.append(argument)


def _new(make: Callable[..., Any], count: int | None = None) -> _Instruction:
    """Pushes what is made of some values: of how many, or of those since the last mark."""
    return lambda machine: machine.push(make(machine.popped(count)))


def _more(kind: type[list[Any]], count: int | None = None) -> _Instruction:
    """Adds some values to the container below them."""
    return lambda machine: machine.add(kind, machine.popped(count))


# What each instruction does.
_STEPS: dict[str, _Instruction] = {
    "PROTO": _Machine.begin,
    "FRAME": _Machine.frame,
    "NONE BININT BININT1 BININT2 BINFLOAT": _constant(),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "LONG1 LONG4 SHORT_BINUNICODE BINUNICODE BINUNICODE8": _Machine.literal,
    "SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8": _Machine.literal,
    "MARK": lambda machine: machine.marks.append(len(machine.stack)),
    "POP": lambda machine: machine.drop(1),
    "POP_MARK": _Machine.drop,
    "DUP": lambda machine: machine.stack.append(machine.top()),
    "TUPLE1": _new(tuple, 1),
    "TUPLE2": _new(tuple, 2),
    "TUPLE3": _new(tuple, 3),
    "TUPLE": _new(tuple),
    "EMPTY_LIST EMPTY_SET": lambda machine: machine.push([]),
    "EMPTY_DICT": lambda machine: machine.push(Dict()),
    "LIST": _new(list),
    "DICT": _new(_pairs),
    "FROZENSET": _new(Frozen),
    "APPEND": _more(list, 1),
    "APPENDS ADDITEMS": _more(list),
    "SETITEM": _more(Dict, 2),
    "SETITEMS": _more(Dict),
    "BINPUT LONG_BINPUT": _Machine.put,
    "MEMOIZE": lambda machine: machine.put(machine.in_memo),
    "BINGET LONG_BINGET": _Machine.get,
    "GLOBAL": lambda machine, names: machine.find(*names),
    "STACK_GLOBAL": lambda machine: machine.find(*machine.popped(2)),
    "INST OBJ": _Machine.instance,
    "REDUCE": lambda machine: machine.push(machine.calls.result_of(*machine.popped(2))),
    "NEWOBJ": lambda machine: machine.create(*machine.popped(2)),
    "NEWOBJ_EX": lambda machine: machine.create(*machine.popped(3)),
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
}
_STEP_OF = {name: step for names, step in _STEPS.items() for name in names.split()}
_OPCODES = {op.code.encode("latin-1"): op for op in pickletools.opcodes}
_READERS = {op.name: op.arg.reader for op in pickletools.opcodes if op.arg is not None}
_READERS |= {"GLOBAL": _names, "INST": _names}
_TABLE = {
    code: (_READERS.get(op.name), _STEP_OF[op.name])
    for code, op in _OPCODES.items()
    if op.name in _STEP_OF
}
