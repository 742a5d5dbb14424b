"""`make lock`: write the lock from pyproject.toml; needs uv.

A package keeps the version that it has in the lock while pyproject.toml allows it; with `--upgrade`
it gets the newest. Every file that pip may choose is listed by its hash, without its address, so
that any index can serve it.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

LOCK = Path(__file__).parent
PYPROJECT = LOCK.parent / "pyproject.toml"
# The promised platforms, under uv's names; for macOS, the version of torch's wheels.
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
CUDA = re.compile(r"nvidia-|cuda-")
PYTORCHS_INDEX = "https://download.pytorch.org/whl/cpu"
# The first lines of each file. The first file has torch itself for macOS, which has one build.
PACKAGES = "# What a learner needs; of torch only the build for macOS.\n"
EXTRAS = "# What testing, the site, clusters and PostgreSQL need besides.\n"
TORCH_CUDA = "# torch for Linux as PyPI has it, with CUDA.\n"
TORCH_CPU = f"# torch for Linux without CUDA.\n--extra-index-url {PYTORCHS_INDEX}\n"
BY = "# Written by `make lock` from pyproject.toml: do not edit.\n"


def main(arguments: list[str]) -> int:
    """Write the four files and return 0; with the argument `--upgrade`, with newest versions.

    Raises:
        FileNotFoundError: when uv is not installed.
        subprocess.CalledProcessError: when uv finds no solution, or no wheel; it says why.
    """
    text = PYPROJECT.read_text(encoding="utf-8")
    project = tomllib.loads(text)
    locked = "".join(path.read_text(encoding="utf-8") for path in sorted(LOCK.glob("*.txt")))
    kept = "" if "--upgrade" in arguments else "".join(entries(locked).values())
    whole = resolve(text, ["--all-extras"], kept)
    check_wheels(whole, pythons(text))
    every = entries(whole)
    needed = entries(resolve(text, ["--extra=course"], "".join(every.values())))
    files: dict[str, list[str]] = {"packages": [], "extras": [], "torch-cuda": []}
    for first, entry in every.items():
        name = first.partition("=")[0]
        if name == "torch":
            files["packages"].append(only_on(entry, "darwin"))
            files["torch-cuda"].append(only_on(entry, "linux"))
        elif CUDA.match(name):
            files["torch-cuda"].append(entry)
        else:
            there = any(other.partition("=")[0] == name for other in needed)
            files["packages" if there else "extras"].append(entry)
    for name, beginning in zip(files, (PACKAGES, EXTRAS, TORCH_CUDA), strict=True):
        (LOCK / f"{name}.txt").write_text(BY + beginning + "".join(files[name]), encoding="utf-8")
    write_torch_cpu(project["project"]["optional-dependencies"]["course"])
    return 0


def resolve(pyproject: str, options: list[str], preferred: str) -> str:
    """Return uv's lock of these dependencies, for any platform and the promised Pythons.

    Args:
        pyproject: the text of a pyproject.toml.
        options: further options of `uv pip compile`, such as `--all-extras`.
        preferred: a lock whose versions are kept where they are allowed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "lock.txt")
        out.write_text(preferred, encoding="utf-8")
        Path(folder, "pyproject.toml").write_text(pyproject, encoding="utf-8")
        compile_lock(["pyproject.toml", f"--python-version={pythons(pyproject)[0]}", *options], out)
        return out.read_text(encoding="utf-8")


def pythons(pyproject: str) -> list[str]:
    """Return the Pythons that the text of a pyproject.toml promises, such as `3.11`."""
    promised = tomllib.loads(pyproject)["project"]["requires-python"]
    oldest, end = re.findall(r"3\.(\d+)", promised)
    return [f"3.{minor}" for minor in range(int(oldest), int(end))]


def check_wheels(lock: str, versions: list[str]) -> None:
    """Have uv fail unless each package has a wheel for each promised platform and Python."""
    install = "uv pip install --dry-run --quiet --no-deps --require-hashes --only-binary=:all:"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lock.txt").write_text(lock, encoding="utf-8")
        for version, platform in itertools.product(versions, PLATFORMS):
            print(f"wheels for Python {version} on {platform}", flush=True)
            options = [f"--python-version={version}", f"--python-platform={platform}"]
            subprocess.run(
                [*install.split(), *options, "--target=none", "-r", "lock.txt"],
                cwd=folder,
                env=os.environ | MACOS,
                check=True,
            )


def compile_lock(options: list[str], out: Path, given: str | None = None) -> None:
    """Have uv write the lock `out`, running in its folder; `given` is its input `-`."""
    command = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--quiet", "--no-header"]
    subprocess.run(
        [*command, "-o", out.name, *options], cwd=out.parent, input=given, text=True, check=True
    )


def entries(lock: str) -> dict[str, str]:
    """Return each package of a lock by its first line: name, version and marker."""
    return {
        entry.partition(" \\")[0]: entry
        for entry in re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    }


def only_on(entry: str, system: str) -> str:
    """Return an entry without a marker, for this `sys_platform` only."""
    return entry.replace(" \\", f" ; sys_platform == '{system}' \\", 1)


def write_torch_cpu(dependencies: list[str], index: str = PYTORCHS_INDEX) -> None:
    """Write torch-cpu.txt for the torch of these dependencies, unless it is for that version.

    A published version does not change, and looking it up needs PyTorch's own index.
    """
    (pin,) = (line for line in dependencies if line.startswith("torch=="))
    path, wanted = LOCK / "torch-cpu.txt", f"{pin}+cpu ; sys_platform == 'linux'"
    if path.exists() and wanted in path.read_text(encoding="utf-8"):
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "lock.txt")
        compile_lock(["-", "--no-deps", "--no-annotate", f"--index-url={index}"], out, wanted)
        path.write_text(BY + TORCH_CPU + out.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
