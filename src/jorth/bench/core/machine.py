"""Where a row was made: versions, hardware, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jorth


@cache
def versions() -> dict[str, str]:
    """The versions of jorth, Python and the numerical packages."""
    found = {"jorth": jorth.__version__, "python": platform.python_version()}
    return found | package_versions("torch", "numpy", "scipy", "numba")


def package_versions(*names: str) -> dict[str, str]:
    """The versions of packages, or "not installed"."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def hardware() -> dict[str, Any]:
    """The processor, its cores, the threads of torch, and the GPU if there is one."""
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


@cache
def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def commit() -> str | None:
    """The git commit of the running source, "-dirty" if it has changes; None outside a checkout."""
    git = ["git", "-C", str(Path(jorth.__file__).parent)]
    describe = [*git, "describe", "--always", "--dirty", "--exclude", "*", "--abbrev=12"]
    tracked = [*git, "ls-files", "--error-unmatch", "__init__.py"]
    try:
        found = subprocess.run(describe, capture_output=True, text=True, timeout=10, check=True)
        # fails if jorth is installed inside the checkout of another project
        subprocess.run(tracked, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
