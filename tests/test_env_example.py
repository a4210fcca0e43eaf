"""The example of a `.env` file names every setting and no other, and what it says of defaults is so."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from dotenv import dotenv_values

from memory_pipeline.settings import Settings, load_settings

FILE = Path(__file__).parents[1] / ".env.example"
TEXT = FILE.read_text(encoding="utf-8")
UNCOMMENTED = re.sub(r"^# (?=MEMORY_)", "", TEXT, flags=re.MULTILINE)
NAMED = dotenv_values(stream=io.StringIO(UNCOMMENTED))


def names(block: str) -> list[str]:
    return re.findall(r"^# (MEMORY_[A-Z0-9_]+)=", block, re.MULTILINE)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_it_names_every_setting_once_and_no_other():
    assert sorted(names(TEXT)) == sorted(f"MEMORY_{name.upper()}" for name in Settings.model_fields)
    assert list(NAMED) == names(TEXT)


def test_copied_as_it_is_it_changes_nothing(tmp_path):
    assert dotenv_values(FILE) == {}
    (tmp_path / ".env").write_text(TEXT)
    assert load_settings() == load_settings(_env_file=None)


def test_all_of_it_is_one_set_up_that_can_be_used(tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (tmp_path / ".env").write_text(
        UNCOMMENTED.replace("MEMORY_SECRETS_DIR=/run/secrets", f"MEMORY_SECRETS_DIR={secrets}")
    )
    settings = load_settings()
    assert settings.model_fields_set == set(Settings.model_fields)
    assert not settings.embedded_archive


def test_what_it_calls_a_default_is_one():
    defaults = load_settings(_env_file=None)
    blocks = [block for block in TEXT.split("\n\n") if re.search(r"Default\.\n# MEMORY_", block)]
    said = [name for block in blocks for name in names(block)]
    assert len(said) >= 9
    given = {name.removeprefix("MEMORY_").lower(): NAMED[name] for name in said}
    assert load_settings(_env_file=None, **given) == defaults


def test_each_setting_has_a_comment_that_says_what_holds_without_it_or_belongs_to_one():
    blocks = [block for block in TEXT.split("\n\n") if names(block)]
    assert all(re.match(r"# (?!MEMORY_)", block) for block in blocks)
