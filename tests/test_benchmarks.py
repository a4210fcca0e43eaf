"""The benchmarks measure what the program is today: each of them runs, over little, and writes its figures as JSON."""

from __future__ import annotations

import importlib
import json
import sys

import pytest

# What the others need is installed apart (peers), is a directory of data (first_ingest, recall, near_duplicates), or
# takes a server, Dagster with all its processes, or minutes (web, whose crowd `tests/web` has; following; ticks).
SMALL = {
    "audit": ["--cards", "20"],
    "projection": ["--cards", "200"],
    "ingest": ["--sessions", "120"],
    "recall_latency": ["--cards", "30", "--questions", "2", "--starts", "1"],
    "listing": ["--cards", "200"],
    "review": ["--cards", "60"],
}


@pytest.mark.parametrize("name", SMALL)
def test_each_runs_and_writes_its_figures(name, monkeypatch, tmp_path):
    figures = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", [name, *SMALL[name], "--json", str(figures)])
    importlib.import_module(f"benchmarks.{name}").main()
    assert json.loads(figures.read_text())
