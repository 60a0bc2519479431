# SPDX-License-Identifier: Apache-2.0
"""Reads the values of a pickle of torch's without calling, importing or setting anything.

A pickle is a program. This one is followed by hand: the few instructions that make containers,
numbers and text do so, and a call makes a value only where it is the call of a function on a fixed
list, whose meaning is known here. Any other call, class or function makes a `Foreign`, which has
its name and can do nothing.
"""

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

from .pickle_globals import DTYPES, HARMLESS, STORAGES, TENSORS, Call, Foreign, Global

_MOST_ITEMS = 20_000_000


class Storage(NamedTuple):
    """What a persistent id says of a storage."""

    key: str
    dtype: str | None  # None: bytes
    size: int  # in elements


class Tensor(NamedTuple):
    """A view of a storage, in elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    reading: tuple[str, ...] = ()  # "conj", "neg", "quantized": what its bytes mean


class Sparse(dict[int, Any]):
    """The parts of a tensor that isn't strided."""


class NoValues:
    """A tensor without values, on `meta`."""


class Pickled(NamedTuple):
    """What a pickle holds."""

    root: Any
    foreign: tuple[str, ...]  # what it names besides tensors, storages and builtin containers


class PickleError(ValueError):
    """The pickle is malformed."""


def read_pickle(data: bytes) -> Pickled:
    """Reads a pickle.

    Raises:
        PickleError: It is malformed.
    """
    machine = _Machine()
    try:
        root = machine.run(data)
    except PickleError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise PickleError(f"malformed pickle: {type(error).__name__}: {error}") from None
    return Pickled(root, tuple(machine.foreign))


_MARK = object()


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.foreign: dict[str, None] = {}
        self._count = 0

    def run(self, data: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(data):
            self._count += 1
            if self._count > _MOST_ITEMS:
                raise PickleError(f"the pickle has more than {_MOST_ITEMS} instructions")
            name = opcode.name
            if name == "STOP":
                break
            step = _STEPS.get(name)
            if step is not None:
                step(self, argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _LITERALS:
                self.stack.append(argument)
            elif name not in ("PROTO", "FRAME"):
                raise PickleError(f"the pickle has the instruction {name}, which torch doesn't use")
        if len(self.stack) != 1:
            raise PickleError("malformed pickle: it must leave one value")
        return self.stack.pop()

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise PickleError("malformed pickle: a mark where a value is wanted")
        return value

    def popped(self, count: int) -> list[Any]:
        return [self.pop() for _ in range(count)][::-1]

    def since_mark(self) -> list[Any]:
        found = []
        while (value := self.stack.pop()) is not _MARK:
            found.append(value)
        return found[::-1]

    def top(self) -> Any:
        return self.stack[-1]

    def put(self, index: int) -> None:
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def find(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise PickleError("malformed pickle: a name that is no text")
        self.stack.append(self._found(f"{module}.{name}"))

    def _found(self, name: str) -> Any:
        if name in TENSORS or name in STORAGES or name in DTYPES or name in HARMLESS:
            return Global(name)
        self.foreign[name] = None
        return Foreign(name)

    def call(self, function: Any, arguments: Any) -> None:
        """What a call gives, of a function that is known; else something inert."""
        if type(function) is Global and type(arguments) is tuple:
            self.stack.append(_called(function.name, arguments, self._note))
        else:
            self.stack.append(Foreign(_name(function)))

    def _note(self, name: str) -> Foreign:
        self.foreign[name] = None
        return Foreign(name)

    def build(self, _: Any) -> None:
        """Sets attributes: left out, for none of them is a tensor of the state dict."""
        self.pop()

    def persistent(self, _: Any) -> None:
        found = self.pop()
        if type(found) is not tuple or len(found) != 5 or found[0] != "storage":
            raise PickleError("malformed pickle: a persistent id that is no storage's")
        _, kind, key, _, size = found
        if type(key) is not str or not _is_size(size):
            raise PickleError("malformed pickle: a storage without a key or a size")
        name = kind.name if type(kind) is Global else ""
        if name not in STORAGES:
            if type(kind) is Foreign:
                self.stack.append(Foreign(kind.name))
                return
            raise PickleError("malformed pickle: a storage of an unknown kind")
        self.stack.append(Storage(key, STORAGES[name], size))

    def append(self, items: list[Any]) -> None:
        container = self.top()
        if type(container) in (list, set):
            (container.extend if type(container) is list else container.update)(items)
        elif type(container) is not Foreign:
            raise PickleError("malformed pickle: items for what is no list")

    def set_items(self, items: list[Any]) -> None:
        container = self.top()
        if len(items) % 2:
            raise PickleError("malformed pickle: a key without a value")
        if type(container) is dict:
            container.update(zip(items[::2], items[1::2], strict=True))
        elif type(container) is not Foreign:
            raise PickleError("malformed pickle: items for what is no dict")


def _name(thing: Any) -> str:
    return thing.name if isinstance(thing, Global | Foreign) else type(thing).__name__


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 62


def _called(name: str, arguments: tuple[Any, ...], note: Callable[[str], Foreign]) -> Any:
    call = TENSORS.get(name)
    if call is None:
        make = HARMLESS.get(name)
        return make(*arguments) if make is not None else note(name)
    if call is Call.NO_VALUES:
        return NoValues()
    if call is Call.FIRST:  # a Parameter is its data
        return arguments[0]
    if call is Call.SPARSE:  # its layout and its parts
        return Sparse(enumerate(arguments[1])) if type(arguments[1]) is tuple else note(name)
    if call is Call.SUBCLASS:  # (function, class, arguments, state)
        function, cls, inner, _ = arguments
        if type(function) is Global and type(cls) is Global and type(inner) is tuple:
            return _called(function.name, inner, note)
        return Foreign(_name(cls))
    storage, offset, shape, strides = arguments[:4]
    if type(storage) is not Storage:
        return Foreign(_name(storage))
    dtype, more = storage.dtype, arguments[6:]
    if call is Call.TYPED_VIEW:
        dtype, more = DTYPES.get(_name(arguments[6])), arguments[7:]
    reading = ("quantized",) if call is Call.QUANTIZED else _reading(*more[:1])
    sizes = (offset, *shape, *strides)
    if dtype is None or len(shape) != len(strides) or not all(map(_is_size, sizes)):
        raise PickleError("malformed pickle: a tensor without a type, a shape or strides")
    return Tensor(storage, dtype, offset, tuple(shape), tuple(strides), reading)


def _reading(metadata: Any = None) -> tuple[str, ...]:
    """What a tensor's metadata say of its bytes."""
    known = metadata if type(metadata) is dict else {}
    return tuple(name for name in ("conj", "neg") if known.get(name))


_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BYTEARRAY8"),
}
_CONSTANTS: dict[str, Any] = {
    "MARK": _MARK,
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}


def _pair(make: Callable[[list[Any]], Any]) -> Callable[[_Machine, Any], None]:
    """An instruction that makes a container of all that stands above the mark."""
    return lambda machine, _: machine.stack.append(make(machine.since_mark()))


def _inst(machine: _Machine, argument: str) -> None:
    machine.since_mark()
    machine.find(*argument.split(" ", 1))


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "POP": lambda machine, _: _drop(machine),
    "POP_MARK": lambda machine, _: _ignore(machine.since_mark()),
    "DUP": lambda machine, _: machine.stack.append(machine.top()),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_SET": lambda machine, _: machine.stack.append(set()),
    "LIST": _pair(list),
    "TUPLE": _pair(tuple),
    "FROZENSET": _pair(frozenset),
    "DICT": _pair(lambda items: dict(zip(items[::2], items[1::2], strict=True))),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.popped(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.popped(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.popped(3))),
    "APPEND": lambda machine, _: machine.append(machine.popped(1)),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "ADDITEMS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.popped(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "PUT": lambda machine, index: machine.put(index),
    "BINPUT": lambda machine, index: machine.put(index),
    "LONG_BINPUT": lambda machine, index: machine.put(index),
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "GET": lambda machine, index: machine.get(index),
    "BINGET": lambda machine, index: machine.get(index),
    "LONG_BINGET": lambda machine, index: machine.get(index),
    "GLOBAL": lambda machine, argument: machine.find(*argument.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.find(*machine.popped(2)),
    "INST": _inst,
    "OBJ": lambda machine, _: machine.call(machine.since_mark()[0], None),
    "REDUCE": lambda machine, _: machine.call(*machine.popped(2)),
    "NEWOBJ": lambda machine, _: machine.call(*machine.popped(2)),
    "NEWOBJ_EX": lambda machine, _: machine.call(*machine.popped(3)[:2]),
    "BUILD": lambda machine, argument: machine.build(argument),
    "BINPERSID": lambda machine, argument: machine.persistent(argument),
}


def _drop(machine: _Machine) -> None:
    machine.stack.pop()


def _ignore(_: object) -> None:
    pass
