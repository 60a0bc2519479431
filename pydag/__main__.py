# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag FILE` shows what is in a file; `python -m pydag check PATH ...` checks files."""

import argparse
import os
import re
import sys
from collections.abc import Sequence


def _number(text: str) -> int | None:
    return None if text == "all" else int(text)


_ABOUT = """\
usage: python -m pydag check PATH ...   is a checkpoint whole, and what is tied in it?
       python -m pydag [show] FILE      what is in a file of a model?
       python -m pydag --version

Each has more to say: python -m pydag check --help"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Shows a file, or checks it; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    match given:
        case ["check", *rest]:
            from .doctor.command import main as check

            return check(rest)
        case [] | ["-h" | "--help" | "help"]:
            print(_ABOUT)
            return 0 if given else 2
        case ["--version"]:
            from . import __version__

            print(f"pydag {__version__}")
            return 0
        case ["show", *rest]:
            return _show(rest)
        case [word, *_] if re.fullmatch(r"\w[\w-]*", word) and not os.path.exists(word):
            print(f"pydag: there is no command or file {word!r}\n{_ABOUT}", file=sys.stderr)
            return 2
    return _show(given)


def _show(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pydag show",
        description="Show what a file of a model holds, without reading its arrays.",
        epilog="The word `show` may be left out. `python -m pydag check --help`: check files.",
    )
    parser.add_argument("file", help="a file, an index or a directory, whoever wrote it")
    parser.add_argument("--depth", type=_number, default=None, help="levels below the root")
    parser.add_argument("--width", type=_number, default=100, help="characters a line, or `all`")
    parser.add_argument("--limit", type=_number, default=200, help="lines, or `all`")
    parser.add_argument("--table", action="store_true", help="a row for each distinct leaf")
    parser.add_argument("--output", help="write .html, .svg, .dot or .txt instead")
    options = parser.parse_args(arguments)
    from .doctor.command import print_text
    from .views.file import file_view

    try:
        view = file_view(options.file, options.depth, options.width, options.limit)
        if options.output:
            view.save(options.output)
        else:
            print_text(str(view.table() if options.table else view))
    except (ValueError, OSError, ImportError) as error:
        print(f"pydag: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
