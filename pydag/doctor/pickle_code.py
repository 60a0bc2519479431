# SPDX-License-Identifier: Apache-2.0
"""The instructions of a pickle, with their arguments, read by the table of `pickletools`.

A long text is no argument: it can't be the name of anything.
"""

import io
import pickletools
from collections.abc import Iterator
from typing import Any

_LONGEST = 10_000  # bytes of a text, or of bytes
_WIDEST = 128  # bits of an integer
_NEWEST = 5  # protocol


class PickleError(ValueError):
    """The pickle is malformed, or holds more than can be read."""


class TooLong:
    """Stands for a text, bytes or an integer that is too long to be a name or a number."""


TOO_LONG = TooLong()


def instructions(data: bytes) -> Iterator[tuple[str, Any]]:
    """The name and the argument of each instruction, up to the end of the pickle.

    Raises:
        ValueError: An instruction is unknown, or incomplete.
    """
    stream = io.BytesIO(data)
    while code := stream.read(1):
        if code not in _TABLE:
            raise PickleError(f"malformed pickle: {code[0]} is no instruction")
        name, read = _TABLE[code]
        argument: Any = None
        if read is not None:
            argument = read(stream)
            kind = type(argument)
            if kind is int:
                if argument.bit_length() > _WIDEST:
                    argument = TOO_LONG
                elif name == "FRAME" and argument > len(data) - stream.tell():
                    raise PickleError("malformed pickle: a frame goes beyond its end")
                elif name == "PROTO" and argument > _NEWEST:
                    raise PickleError(f"the pickle has the protocol {argument}, an unknown one")
            elif kind in (str, bytes, bytearray) and len(argument) > _LONGEST:
                argument = TOO_LONG
        elif name == "STOP":
            return
        yield name, argument
    raise PickleError("malformed pickle: it has no end")


def _two_lines(stream: io.BytesIO) -> tuple[str, str]:
    """A module and a name in it, where `pickletools` would take a backslash for an escape."""
    return stream.readline()[:-1].decode(), stream.readline()[:-1].decode()


_READERS = {
    "GLOBAL": _two_lines,
    "INST": _two_lines,
    "BINSTRING": lambda stream: pickletools.read_string4(stream).encode("latin-1").decode(),
    "SHORT_BINSTRING": lambda stream: pickletools.read_string1(stream).encode("latin-1").decode(),
}
_TABLE = {
    code.code.encode("latin-1"): (
        code.name,
        _READERS.get(code.name, getattr(code.arg, "reader", None)),
    )
    for code in pickletools.opcodes
}
