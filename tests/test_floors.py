"""The floors: every import points down, assets and sensors stay above, and the library knows nothing of Dagster."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("memory_pipeline", "assets", "sensors")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")

# module → an import that it must not have, and the contract that says so
FORBIDDEN = {
    "memory_pipeline/text.py": ("import memory_pipeline.cards", "every import points down"),
    "memory_pipeline/cards.py": ("import memory_pipeline.review", "every import points down"),
    "memory_pipeline/review.py": ("import memory_pipeline.archive.cards", "every import points down"),
    "memory_pipeline/archive/cards.py": ("import memory_pipeline.runtime", "every import points down"),
    "memory_pipeline/runtime.py": ("import memory_pipeline.recall", "every import points down"),
    "memory_pipeline/propagation/projector.py": ("import memory_pipeline.cli", "every import points down"),
    "assets/common.py": ("import memory_pipeline.definitions", "every import points down"),
    "memory_pipeline/lexical.py": ("import sensors", "only the table of contents imports assets and sensors"),
    "memory_pipeline/points.py": (
        "import dagster",
        "the library knows nothing of Dagster, and torch comes with a model alone",
    ),
    "memory_pipeline/embedding/base.py": (
        "import torch",
        "the library knows nothing of Dagster, and torch comes with a model alone",
    ),
}


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_every_import_points_down():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_stands_on_a_floor():
    placed = {name.strip() for layer in LAYERS for name in layer.split(":")}
    modules = {path.stem for path in (ROOT / "memory_pipeline").iterdir() if path.suffix == ".py"}
    packages = {path.parent.name for path in (ROOT / "memory_pipeline").glob("*/__init__.py")}
    assert {f"memory_pipeline.{name}" for name in (modules | packages) - {"__init__"}} | {"assets", "sensors"} == placed


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> str:
    """What is said of a copy in which every forbidden import was planted."""
    copy = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "sessions"))
    for file, (planted, _) in FORBIDDEN.items():
        with (copy / file).open("a") as module:
            module.write(f"\n{planted}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("contract", [contract["name"] for contract in CONTRACTS])
def test_each_contract_can_fail(broken, contract):
    assert f"{contract} BROKEN" in broken
    assert contract in {contract for _, contract in FORBIDDEN.values()}


@pytest.mark.parametrize(("file", "planted"), [(file, planted) for file, (planted, _) in FORBIDDEN.items()])
def test_an_import_that_points_up_or_out_is_found(broken, file, planted):
    importer = file.removesuffix(".py").replace("/", ".")
    assert f"{importer} -> {planted.removeprefix('import ')} " in broken
