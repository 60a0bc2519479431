# SPDX-License-Identifier: Apache-2.0
"""A short campaign against compiled calls, and that one finds what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("equinox")

CAMPAIGN = Path(__file__).with_name("jit_campaign.py")


def campaign(*options: str, **variables: str) -> tuple[int, str]:
    """The exit status of a campaign, and what it says."""
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), *options],
        env=os.environ | {"PYTHONSAFEPATH": ""} | variables,  # its modules lie beside it
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_short_campaign_finds_nothing() -> None:
    """Compiled functions see what plain Python sees, and give the same in a new process."""
    status, said = campaign("--rounds", "8", "--cold", "1", "--seed", "1")
    assert status == 0, said
    assert "seed 1: 8 rounds" in said
