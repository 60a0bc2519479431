# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag check PATH ...`."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from .check import check_path
from .finding import Level, shown, size_text
from .paths import check_free, is_for_folder
from .report import JSON_VERSION, count_text

_ABOUT = """\
Check files of models: safetensors files, torch's zip files (.pt, .pth, .bin, .ckpt), GGUF files,
and directories or indices of the first two; also elsewhere, by addresses that fsspec knows, such as
hf://org/name. Nothing in a file is run."""
_CODES = """\
exit code: 0, or 1 where there is an error (with --strict a doubt or waste, too), or 2 where a path
can't be read or written. With --write it counts what is left in OUT"""
_FLAGS = {
    "--json": "print one JSON object",
    "--headers": "read headers alone, and compare no content",
    "--quiet": "print errors alone",
    "--strict": "exit with 1 for a doubt or waste, too",
}
_UNREADABLE = (ValueError, OSError, ImportError)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pydag check", description=_ABOUT, epilog=_CODES
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, an index or a directory")
    parser.add_argument("--against", metavar="OTHER", help="what it was before: compare with it")
    once = "write what is tied once, with its other names beside it, to a new file or directory"
    parser.add_argument("--write", metavar="OUT", help=once)
    for flag, text in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=text)
    return parser


def main(arguments: Sequence[str]) -> int:
    """Checks what the command line says; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    counted: tuple[Level, ...] = ("error", "doubt", "waste") if options.strict else ("error",)
    if options.write is not None:
        if len(options.paths) != 1:
            parser.error("--write takes one path")
        try:
            check_free(options.write, is_for_folder(options.paths[0], options.write))
        except _UNREADABLE as error:
            return _failed(error)
    code, reports = 0, []
    for i, path in enumerate(options.paths):
        try:
            report = check_path(path, options.against, options.headers, progress=True)
        except _UNREADABLE as error:
            code = _failed(error)
            reports.append({"version": JSON_VERSION, "path": path, "unreadable": _one_line(error)})
            continue
        reports.append(report.to_json())
        if report.at(*counted):
            code = max(code, 1)
        if options.quiet and not options.json:
            for finding in report.at("error"):
                print_text(f"{report.path}: {finding}")
        elif not options.json:
            print_text("\n" * (i > 0) + str(report))
    lines: list[str] = []
    if options.write is not None and code != 2:
        code, lines, written = _write(options.paths[0], options.write, counted)
        reports[0].update(written)
    if options.json:
        whole = reports[0] if len(reports) == 1 else {"version": JSON_VERSION, "reports": reports}
        print_text(json.dumps(whole, indent=2))
    elif lines and not options.quiet:
        print_text("\n".join(lines))
    return code


def print_text(text: str) -> None:
    """Prints a text; characters that the terminal doesn't know are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _failed(error: Exception) -> int:
    print(f"pydag: {_one_line(error)}", file=sys.stderr)
    return 2


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename!r}: {error.strerror}"
    return " ".join(line.strip() for line in str(error).splitlines()) or type(error).__name__


def _write(
    path: str, out: str, counted: Sequence[Level]
) -> tuple[int, list[str], dict[str, object]]:
    """Writes it; returns the exit code, that of what was written, and lines and JSON about it."""
    from .repair import write_once

    try:
        text, findings, others = write_once(path, out)
    except _UNREADABLE as error:
        return _failed(error), [], {}
    left = Counter(finding.level for finding in findings if finding.level in counted)
    for level, number in left.items():
        text += f"; {count_text(number, level)} left"
    if wasted := sum(finding.nbytes for finding in findings):
        text += f"; {size_text(wasted)} are still wasted"
    names = {how.replace("_", " "): ", ".join(map(shown, own)) for how, own in others.items()}
    lines = [f"{out}: {how}: {own}" for how, own in names.items() if own]
    return int(bool(left)), [*lines, text], {"written": {"path": out, **others}}
