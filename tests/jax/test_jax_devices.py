# SPDX-License-Identifier: Apache-2.0
"""On many devices, and in many processes: programs that are run in processes of their own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def start(program: str, *arguments: str, flags: str = "") -> subprocess.Popen[str]:
    """Starts one of the programs that lie beside this file."""
    paths = [str(HERE.parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        # Two processes would read what the other one is writing, and JAX would warn.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "random",
        "XLA_FLAGS": " ".join(filter(None, [os.environ.get("XLA_FLAGS"), flags])),
    }
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(HERE / program), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    """A port that nobody is given by chance, as those are from which connections go out."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise OSError("all ports from 20000 to 32000 are in use")


def output(process: subprocess.Popen[str]) -> str:
    """What a program printed; it must succeed."""
    try:
        out, errors = process.communicate(timeout=500)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


def test_eight_devices() -> None:
    """A tied model gives the single device's result, and stays tied: `jit`, `shard_map`, files."""
    program = start("eight_devices.py", flags="--xla_force_host_platform_device_count=8")
    assert output(program).split() == [
        "named_shardings",
        "sharded_arguments",
        "shard_map",
        "shard_map_prefixes",
        "files",
        "no_host_copy",
    ]


def test_two_processes() -> None:
    """Each builds its own model; they agree on its spec and hash, and train it alike."""
    port = str(free_port())
    processes = [start("two_processes.py", port, str(number)) for number in range(2)]
    try:
        first, second = (output(process).splitlines()[-1] for process in processes)
    finally:
        for process in processes:
            process.kill()
    assert first == second
    assert "{'decoder': {'b': *, 'w': &0 *}, 'encoder': {'w': *0}, 'name': *}" in first


def test_refs_on_meshes() -> None:
    """A ref on a mesh is written, and keeps its sharding, over Auto axes and over Explicit ones."""
    program = start("refs_on_meshes.py", flags="--xla_force_host_platform_device_count=4")
    assert output(program).split() == ["Auto", "Explicit", "both"]
