# SPDX-License-Identifier: Apache-2.0
"""The instructions of a pickle, with their arguments, as `pickletools` describes them.

A long text is skipped, not copied: it can't be the name of anything.
"""

import io
import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any

_LONGEST = 10_000  # bytes of a text, bytes or a line
_WIDEST = 16  # bytes of an integer
_NEWEST = 5  # protocol


class PickleError(ValueError):
    """The pickle is malformed, or holds more than can be read."""


class TooLong:
    """Stands for a text, bytes or an integer that is too long to be a name or a number."""


TOO_LONG = TooLong()

_Reader = Callable[[bytes, int], tuple[Any, int]]


def instructions(data: bytes) -> Iterator[tuple[str, Any]]:
    """The name and the argument of each instruction, up to the end of the pickle.

    Raises:
        PickleError: An instruction is unknown, or isn't whole.
    """
    at = 0
    while at < len(data):
        known = _TABLE[data[at]]
        if known is None:
            raise PickleError(f"malformed pickle: {data[at]} is no instruction")
        name, read = known
        at += 1
        if name == "STOP":
            return
        argument = None
        if read is not None:
            argument, at = read(data, at)
        yield name, argument
    raise PickleError("malformed pickle: it has no end")


def _number(form: str) -> _Reader:
    code = struct.Struct(form)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + code.size
        if end > len(data):
            raise PickleError("malformed pickle: it ends within a number")
        return code.unpack_from(data, at)[0], end

    return read


def _counted(width: int, longest: int, make: Callable[[bytes], Any]) -> _Reader:
    """Reads what stands behind its length."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        begin = at + width
        end = begin + int.from_bytes(data[at:begin], "little")
        if end > len(data):
            raise PickleError("malformed pickle: it ends within a value")
        return (make(data[begin:end]) if end - begin <= longest else TOO_LONG), end

    return read


def _lines(count: int, make: Callable[[bytes], Any]) -> _Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at
        for _ in range(count):
            end = data.find(b"\n", end, at + _LONGEST) + 1
            if not end:
                raise PickleError("malformed pickle: a line without an end, or a long one")
        return make(data[at:end]), end

    return read


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _frame(data: bytes, at: int) -> tuple[Any, int]:
    size, end = _number("<Q")(data, at)
    if size > len(data) - end:
        raise PickleError("malformed pickle: a frame goes beyond its end")
    return None, end


def _protocol(data: bytes, at: int) -> tuple[Any, int]:
    version, end = _number("<B")(data, at)
    if version > _NEWEST:
        raise PickleError(f"the pickle has the protocol {version}, and {_NEWEST} is the newest")
    return None, end


def _parsed(reader: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    """Reads one line by a function of `pickletools`."""

    def make(line: bytes) -> Any:
        found = reader(io.BytesIO(line))
        is_wide = type(found) is int and found.bit_length() > 8 * _WIDEST
        return TOO_LONG if is_wide else found

    return make


_NUMBERS = {
    "uint1": "<B",
    "uint2": "<H",
    "int4": "<i",
    "uint4": "<I",
    "uint8": "<Q",
    "float8": ">d",
}
_COUNTED: dict[str, tuple[int, Callable[[bytes], Any]]] = {
    "string": (_LONGEST, _text),
    "unicodestring": (_LONGEST, _text),
    "bytes": (_LONGEST, bytes),
    "bytearray": (_LONGEST, bytes),
    "long": (_WIDEST, _integer),
}


def _reader(code: pickletools.OpcodeInfo) -> _Reader | None:
    argument = code.arg
    if code.name == "FRAME":
        return _frame
    if code.name == "PROTO":
        return _protocol
    if argument is None:
        return None
    if argument.name in _NUMBERS:
        return _number(_NUMBERS[argument.name])
    if code.name in ("GLOBAL", "INST"):
        return _lines(2, lambda lines: tuple(lines.decode().split("\n")[:2]))
    if argument.n == pickletools.UP_TO_NEWLINE:
        return _lines(1, _parsed(argument.reader))
    kind = argument.name.rstrip("148")
    return _counted(int(argument.name[len(kind) :]), *_COUNTED[kind])


_TABLE: list[tuple[str, _Reader | None] | None] = [None] * 256
for _code in pickletools.opcodes:
    _TABLE[ord(_code.code)] = _code.name, _reader(_code)
