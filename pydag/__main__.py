# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag FILE` shows what is in a file; `python -m pydag check PATH ...` checks files."""

import argparse
import sys
from collections.abc import Sequence


def _number(text: str) -> int | None:
    return None if text == "all" else int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Shows a file, or checks it; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["check"]:
        from .doctor.command import main as check

        return check(given[1:])
    return _show(given[1:] if given[:1] == ["show"] else given)


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
    from .views.file import file_view

    try:
        view = file_view(options.file, options.depth, options.width, options.limit)
        if options.output:
            view.save(options.output)
        else:
            text = str(view.table() if options.table else view)
            encoding = sys.stdout.encoding or "utf-8"
            print(text.encode(encoding, "backslashreplace").decode(encoding))
    except (ValueError, OSError, ImportError) as error:
        print(f"pydag: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
