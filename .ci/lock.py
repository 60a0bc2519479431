# SPDX-License-Identifier: Apache-2.0
"""Write .ci/locked.txt: one version of each package that the tests, the site and the wheels need.

    python .ci/lock.py

The tests of the workflow install these versions; one job installs the newest ones. Needs uv.
"""

import subprocess
from pathlib import Path

from environment import requirements

LOCKED = Path(__file__).with_name("locked.txt")
GROUPS = ("test-all", "coverage", "wheels")


def main() -> None:
    """Resolve the requirements for all Pythons and platforms."""
    wanted = dict.fromkeys(item for group in GROUPS for item in requirements(group))
    command = ["uv", "pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
    command += ["--no-annotate", "--no-header", "--upgrade", "-", "--output-file", str(LOCKED)]
    subprocess.run(command, input="\n".join(wanted), text=True, check=True)


if __name__ == "__main__":
    main()
