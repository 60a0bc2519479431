# SPDX-License-Identifier: Apache-2.0
"""`python -m pydag check PATH ...`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .check import check_path
from .finding import Level, size_text
from .new_place import check_free
from .report import JSON_VERSION, WORDS, Report, as_json_text

_ABOUT = """\
Check files of models: safetensors files, torch's zip files (.pt, .pth, .bin), GGUF files, and
directories or indices of the first two. Nothing in a file is run."""
_CODES = """\
exit code: 0, or 1 where there is an error (with --strict a doubt or waste, too), or 2 where a path
can't be read or written. With --write it counts what is left in OUT"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pydag check", description=_ABOUT, epilog=_CODES
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, an index or a directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--against", metavar="OTHER", help="what it was before: compare with it")
    parser.add_argument(
        "--write",
        metavar="OUT",
        help="write what is tied once, with its other names beside it, to a new file or directory",
    )
    parser.add_argument("--quiet", action="store_true", help="print errors alone")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 for a doubt or waste, too"
    )
    return parser


def main(arguments: Sequence[str]) -> int:
    """Checks what the command line says; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.write is not None and len(options.paths) != 1:
        parser.error("--write takes one path")
    code, reports = 0, []
    counted: tuple[Level, ...] = ("error", "doubt", "waste") if options.strict else ("error",)
    if options.write is not None and not _is_free(options.write):
        return 2
    for i, path in enumerate(options.paths):
        try:
            report = check_path(path, options.against, progress=True)
        except (ValueError, OSError, ImportError) as error:
            _complain(error)
            reports.append({"version": JSON_VERSION, "path": path, "unreadable": _one_line(error)})
            code = 2
            continue
        reports.append(report.to_json())
        if report.at(*counted):
            code = max(code, 1)
        if not options.json:
            _print(_text(report, options.quiet, i > 0))
    if options.json:
        _print(as_json_text(_document(reports)))
    if options.write is not None and code != 2:
        code = _write(options.paths[0], options.write, counted, options.quiet or options.json)
    return code


def _document(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if len(reports) == 1:
        return reports[0]
    return {"version": JSON_VERSION, "reports": list(reports)}


def _text(report: Report, is_quiet: bool, is_next: bool) -> str:
    if is_quiet:
        return "\n".join(f"{report.path}: {finding}" for finding in report.at("error"))
    return ("\n" if is_next else "") + str(report)


def _print(text: str) -> None:
    if text:
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding))


def _complain(error: Exception) -> None:
    print(f"pydag: {_one_line(error)}", file=sys.stderr)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename!r}: {error.strerror}"
    return " ".join(line.strip() for line in str(error).splitlines()) or type(error).__name__


def _is_free(out: str) -> bool:
    try:
        check_free(out)
    except (ValueError, OSError) as error:
        _complain(error)
        return False
    return True


def _write(path: str, out: str, counted: Sequence[Level], is_quiet: bool) -> int:
    """Writes it; the exit code is that of what was written."""
    from .repair import write_once

    try:
        text, findings = write_once(path, out)
    except (ValueError, OSError, ImportError) as error:
        _complain(error)
        return 2
    left = Counter(finding.level for finding in findings if finding.level in counted)
    for level, number in left.items():
        text += f"; {number} {WORDS[level][number != 1]} left"
    if wasted := sum(finding.nbytes for finding in findings):
        text += f"; {size_text(wasted)} are still wasted"
    if not is_quiet:
        _print(text)
    return 1 if left else 0
