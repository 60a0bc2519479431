# SPDX-License-Identifier: Apache-2.0
"""Checking the files of a model."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydag.doctor.report import Report


def check(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    headers: bool = False,
) -> "Report":
    """Check the files of a model: are they whole, which arrays are tied, does the config agree?

    It returns a report: an iterable of findings, each with a `level`, `names`, a `text` of one
    line, and `nbytes`, the bytes that are wasted. The levels are "error", "doubt", "waste", "tie",
    and "change" where two models are compared. `report.ok` says that there is no error;
    `str(report)` is what `python -m pydag check` prints, and `report.to_json()` what it prints with
    `--json`.

    Only headers are read, and arrays that may be equal. No code in a file is run: in torch's
    pickles, tensors, storages and builtin containers are understood, and any other name is an
    error.

    Args:
        path: A safetensors file, one of torch's zip files (`.pt`, `.pth`, `.bin`), a GGUF file; an
            index of files of the first two kinds, or a directory with any of these. A `config.json`
            beside it is read. It may be an address that fsspec knows, such as `hf://org/name`:
            then only the parts that are needed are fetched.
        against: The model before a conversion, a merge or a training. The report then also lists
            changes of its ties, names, types and values.
        headers: Whether to read headers alone. Then no values are compared, which the report says.

    Raises:
        ValueError: A path is of no known format, too damaged to be read, or a file in which two
            readers may find different tensors; an index names files outside of its directory.
        OSError: A path can't be read.

    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> w = np.arange(600.0).reshape(20, 30)
    >>> pydag.files.save(path, {"embed": w, "head": w, "copy": w.copy()})
    >>> for finding in check(path):
    ...     print(finding)
    waste: embed equals copy and is stored again: 4.8 kB
    tie: head is embed, by alias metadata
    """
    from pydag.doctor.check import check_path

    return check_path(path, against, headers)
