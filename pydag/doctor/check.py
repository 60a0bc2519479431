# SPDX-License-Identifier: Apache-2.0
"""Checks a model, and compares it with another one."""

import os
from contextlib import closing

from pydag.files.path import check_path as check_given
from pydag.files.source import collector_paused

from .finding import Finding, ReportedPairs
from .head_checks import check_heads
from .index_checks import check_beside
from .layers import check_layers
from .model import Model
from .opening import open_model
from .progress import Bar
from .quantized import check_parts
from .report import Report
from .search import find_copies
from .ties import check_aliases, check_storages


@collector_paused
def check_path(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    headers: bool = False,
    progress: bool = False,
) -> Report:
    """The implementation of `pydag.files.check`; `progress` shows a bar on a terminal."""
    with closing(Bar(progress)) as bar, closing(_open(path, headers, against is None)) as model:
        if model.pipeline:
            rows = model.pipeline.items()
            parts = {name: check_path(part, None, headers, progress) for name, part in rows}
            return Report(model, model.findings, parts)
        findings = findings_of(model, bar)
        if against is not None:
            from .against import compare

            with closing(_open(against, headers)) as before:
                changes = list(compare(before, model, bar))
            ties = [set(change.names) for change in changes if change.level == "tie"]
            findings = [
                f
                for f in findings
                if f.level != "tie" or not any(names >= set(f.names) for names in ties)
            ]
            findings += changes
        return Report(model, findings)


def _open(path: str | os.PathLike[str], headers: bool, may_have_parts: bool = False) -> Model:
    check_given(path, None, "check(path), with the path where it was saved")
    model = open_model(os.fsdecode(path), may_have_parts)
    model.has_content = not headers
    return model


def findings_of(model: Model, bar: Bar) -> list[Finding]:
    """All findings about a model."""
    pairs = ReportedPairs()
    without_parts = list(check_parts(model))
    return [
        *model.findings,
        *without_parts,
        *check_layers(model, without_parts),
        *(check_beside(model, bar) if model.has_content else ()),
        *model.config_findings,
        *check_aliases(model, pairs, bar),
        *check_storages(model),
        *check_heads(model, pairs, bar),
        *(find_copies(model, pairs, bar) if model.has_content else ()),
    ]
