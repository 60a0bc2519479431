# SPDX-License-Identifier: Apache-2.0
"""Reads the values of a pickle of torch's without calling, importing or setting anything.

A pickle is a program. Here its instructions make containers, numbers and text, and a call makes a
value only if `pickle_calls` knows the function. Any other call, class or function makes an
`Opaque`, which has its name and can do nothing.
"""

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

from .finding import shown
from .pickle_calls import KNOWN, STORAGES, Calls, is_size, name_of
from .pickle_code import PickleError, instructions
from .pickle_objects import Dict, Global, Opaque, Sparse, Storage, Tensor

# What all values may take, in bytes, roughly; a tensor of a state dict takes 1600 with all that it
# is made of.
_MOST = 192 << 20
_INSTRUCTION, _ITEM, _CHARACTER, _CONTAINER, _TENSOR = 24, 16, 4, 96, 256
_LONGEST_NAME = 500  # characters of the name of a class or function
_FIRST_PLACES = 256  # of the memo; those behind them are filled in order


class Pickled(NamedTuple):
    """The content of a pickle."""

    root: Any
    beside: list[Opaque]  # what containers and tensors got besides their items
    foreign: tuple[str, ...]  # what it names besides tensors, storages and builtin containers


def read_pickle(data: bytes) -> Pickled:
    """Reads a pickle.

    Raises:
        PickleError: It is malformed, or holds more than can be read.
    """
    machine = _Machine()
    try:
        root = machine.run(data)
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        text = shown(f"{type(error).__name__}: {error}")
        raise PickleError(f"malformed pickle: {text}") from None
    return Pickled(root, machine.calls.beside, tuple(machine.calls.foreign))


_EMPTY = object()


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []  # the height of the stack at each mark
        self.memo: list[Any] = [_EMPTY] * _FIRST_PLACES
        self.in_memo = 0
        self.calls = Calls()
        self._storages: dict[str, Storage] = {}
        self._spent = 0

    def run(self, data: bytes) -> Any:
        for name, argument in instructions(data):
            self._spent += _INSTRUCTION
            if self._spent > _MOST:
                self.spend(0)
            step = _STEPS.get(name)
            if step is not None:
                step(self, argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _LITERALS:
                if type(argument) in (str, bytes, bytearray):
                    self.spend(_CHARACTER * len(argument))
                self.stack.append(argument)
            elif name not in ("PROTO", "FRAME"):
                raise PickleError(f"the pickle has the instruction {name}, which torch doesn't use")
        if len(self.stack) != 1 or self.marks:
            raise PickleError("malformed pickle: it must leave one value")
        return self.stack.pop()

    def spend(self, size: int) -> None:
        self._spent += size
        if self._spent > _MOST:
            raise PickleError("the pickle holds more values than can be read in little memory")

    def push(self, value: Any) -> None:
        """Pushes a new value."""
        kind = type(value)
        if kind is Tensor:
            self.spend(_TENSOR + _ITEM * 2 * len(value.shape))
        elif kind in (list, tuple, Dict, Sparse):
            self.spend(_CONTAINER + _ITEM * len(value))
        else:
            self.spend(_CONTAINER)
        self.stack.append(value)

    def popped(self, count: int) -> list[Any]:
        begin = len(self.stack) - count
        if begin < (self.marks[-1] if self.marks else 0):
            raise PickleError("malformed pickle: a value is missing")
        values = self.stack[begin:]
        del self.stack[begin:]
        return values

    def since_mark(self) -> list[Any]:
        values = self.popped(len(self.stack) - self.marks[-1])
        self.marks.pop()
        return values

    def top(self) -> Any:
        if self.marks and self.marks[-1] == len(self.stack):
            raise PickleError("malformed pickle: a mark where a value is wanted")
        return self.stack[-1]

    def drop(self) -> None:
        """Takes away a value, or a mark."""
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    def put(self, index: int) -> None:
        if not 0 <= index <= len(self.memo):
            raise PickleError("malformed pickle: it leaves out places of the memo")
        if index == len(self.memo):
            self.memo.append(_EMPTY)
        self.in_memo += self.memo[index] is _EMPTY
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        if index < 0 or self.memo[index] is _EMPTY:
            raise PickleError("malformed pickle: a place of the memo is empty")
        self.stack.append(self.memo[index])

    def find(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise PickleError("malformed pickle: a name that is no text")
        full = f"{module[:_LONGEST_NAME]}.{name}"
        if len(full) > _LONGEST_NAME:
            raise PickleError("malformed pickle: a long name of a class or function")
        self.push(Global(full) if full in KNOWN else Opaque(self.calls.note(full)))

    def call(self, function: Any, arguments: Any) -> None:
        self.push(self.calls.made(function, arguments))

    def create(self, cls: Any, arguments: Any, *more: Any) -> None:
        """An object of a class, without a call of its `__init__`."""
        if type(cls) is Global and arguments == () and not more:
            self.call(cls, arguments)
        else:
            self.push(Opaque(name_of(cls), cls, arguments, *more))

    def build(self, _: Any) -> None:
        """Sets attributes."""
        state, owner = *self.popped(1), self.top()
        if type(owner) is Opaque:
            owner.contents.append(state)
        else:
            self.calls.keep(f"the attributes of a {name_of(owner).lower()}", state)

    def persistent(self, _: Any) -> None:
        (found,) = self.popped(1)
        if type(found) is not tuple or len(found) != 5 or found[0] != "storage":
            raise PickleError("malformed pickle: a persistent id that is no storage's")
        _, kind, key, _, size = found
        if type(key) is not str or not is_size(size):
            raise PickleError("malformed pickle: a storage without a key or a size")
        if type(kind) is Opaque:
            self.push(Opaque(kind.name, Storage(key, None, size)))
            return
        name = kind.name if type(kind) is Global else ""
        if name not in STORAGES:
            raise PickleError("malformed pickle: a storage of an unknown kind")
        storage = Storage(key, STORAGES[name], size)
        if self._storages.setdefault(key, storage) != storage:
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


# Instructions that push their argument: a number, text or bytes.
_LITERALS = frozenset(
    code.name
    for code in pickletools.opcodes
    if code.arg and not code.stack_before and code.stack_after not in ([], [pickletools.anyobject])
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def _inst(machine: _Machine, argument: tuple[str, str]) -> None:
    arguments = tuple(machine.since_mark())
    machine.find(*argument)
    (function,) = machine.popped(1)
    machine.call(function, arguments)


def _object(machine: _Machine, _: Any) -> None:
    function, *arguments = machine.since_mark()
    machine.call(function, tuple(arguments))


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": lambda machine, _: machine.drop(),
    "POP_MARK": lambda machine, _: machine.since_mark().clear(),
    "DUP": lambda machine, _: machine.stack.append(machine.top()),
    "EMPTY_DICT": lambda machine, _: machine.push(Dict()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.since_mark())),
    "DICT": lambda machine, _: machine.push(_pairs(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.popped(1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.popped(2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.popped(3))),
    "APPEND": lambda machine, _: machine.add(list, machine.popped(1)),
    "SETITEM": lambda machine, _: machine.add(Dict, machine.popped(2)),
    "SETITEMS": lambda machine, _: machine.add(Dict, machine.since_mark()),
    "MEMOIZE": lambda machine, _: machine.put(machine.in_memo),
    "GLOBAL": lambda machine, argument: machine.find(*argument),
    "STACK_GLOBAL": lambda machine, _: machine.find(*machine.popped(2)),
    "INST": _inst,
    "OBJ": _object,
    "REDUCE": lambda machine, _: machine.call(*machine.popped(2)),
    "NEWOBJ": lambda machine, _: machine.create(*machine.popped(2)),
    "NEWOBJ_EX": lambda machine, _: machine.create(*machine.popped(3)),
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_SET"), lambda machine, _: machine.push([])),
    **dict.fromkeys(("LIST", "FROZENSET"), lambda machine, _: machine.push(machine.since_mark())),
    **dict.fromkeys(
        ("APPENDS", "ADDITEMS"), lambda machine, _: machine.add(list, machine.since_mark())
    ),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
}
