# SPDX-License-Identifier: Apache-2.0
"""Checks a model, and compares it with another one."""

import os

from pydag.files.collector import collector_paused
from pydag.files.path import check_local
from pydag.files.path import check_path as check_given

from .finding import Finding, Pairs
from .head_checks import check_heads
from .model import Model
from .opening import open_model
from .progress import Bar
from .report import Report
from .search import find_copies
from .ties import check_aliases, check_storages


def check_path(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Report:
    """The implementation of `pydag.files.check`.

    Args:
        path: The path of the model.
        against: The path of the model before a change.
        progress: Whether to show the progress on a terminal.
    """
    model = _opened(path)
    bar = Bar(progress)
    try:
        findings = findings_of(model, bar)
        if against is not None:
            from .against import compare

            before = _opened(against)
            try:
                changes = list(compare(before, model, bar))
            finally:
                before.close()
            ties = [set(change.names) for change in changes if change.level == "tie"]
            findings = [
                finding
                for finding in findings
                if finding.level != "tie" or not any(names >= set(finding.names) for names in ties)
            ]
            findings += changes
        return Report(model, findings)
    finally:
        bar.close()
        model.close()


@collector_paused()
def _opened(path: str | os.PathLike[str]) -> Model:
    check_given(path, None, "check(path), with the path where it was saved")
    check_local(path, is_read=True)
    return open_model(os.fsdecode(path))


def findings_of(model: Model, bar: Bar) -> list[Finding]:
    """All findings about a model."""
    pairs = Pairs()
    return [
        *model.findings,
        *model.config_findings,
        *check_aliases(model, pairs, bar),
        *check_storages(model),
        *check_heads(model, pairs, bar),
        *find_copies(model, pairs, bar),
    ]
