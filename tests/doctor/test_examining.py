"""All checks are run, whatever some of them meet; no secret is said; the command line ends as documented."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from memory_pipeline.doctor import FAULT_EXIT_CODE, Result, State, examine, worst
from memory_pipeline.doctor.base import Check, Installation, fault
from memory_pipeline.doctor.masking import Masker
from memory_pipeline.doctor.registry import checks
from memory_pipeline.doctor.running import _outcome
from memory_pipeline.runtime import Runtime
from memory_pipeline.settings import Examined, embedded_settings, examine_settings, load_settings
from memory_pipeline.web.identity import LocalToken
from tests.command_line import runner
from tests.doctor.conftest import CANARY, only, report_of

FAULT, OK, WARNING, NOT_APPLICABLE = State.FAULT, State.OK, State.WARNING, State.NOT_APPLICABLE
ELSEWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_faults_of_settings_are_all_told_and_what_does_not_need_them_is_looked_at(tmp_path):
    examined = examine_settings(home=tmp_path / "home", qdrant_url="nonsense", embedding_batch_size=0)
    report = report_of(examined)
    assert [each.found.partition(":")[0] for each in report["settings"]] == [
        "MEMORY_QDRANT_URL",
        "MEMORY_EMBEDDING_BATCH_SIZE",
    ]
    assert only(report, "index")[:2] == (NOT_APPLICABLE, "it needs MEMORY_QDRANT_URL, which cannot be used")
    assert only(report, "model")[0] is NOT_APPLICABLE
    assert only(report, "home")[0] is FAULT
    assert list(report) == [check.name for check in checks(examined.settings)]


def test_what_cannot_be_used_together_is_told_in_short_and_keeps_nothing_else_from_being_looked_at(tmp_path):
    examined = examine_settings(home=tmp_path / "home", embedding_provider="openai", embedding_url="http://x/v1")
    report = report_of(examined)
    assert only(report, "model")[:2] == (NOT_APPLICABLE, "it needs MEMORY_EMBEDDING_…, which cannot be used")
    assert "no " in only(report, "home")[1]


def test_a_home_without_an_archive_is_not_made(tmp_path):
    settings = embedded_settings(tmp_path / "home")
    report = report_of(Examined(settings))
    assert only(report, "archive")[0] is FAULT
    assert "memory-pipeline migrate" in only(report, "archive")[2]
    assert only(report, "Dagster's storage")[0] is NOT_APPLICABLE
    assert not settings.home.exists()


def test_a_name_that_nothing_reads_is_told(examined, monkeypatch):
    monkeypatch.setenv("MEMORY_QDRANT_ULR", CANARY)
    state, found, do = only(examined(), "variables")
    assert (state, found) == (WARNING, "MEMORY_QDRANT_ULR is no setting, and has no effect")
    assert do == "is MEMORY_QDRANT_URL meant?"


def test_a_token_that_others_may_read_is_a_fault(examined, settings):
    settings = settings.model_copy(update={"database_url": None, "owner_url": None})
    settings.home.mkdir()
    LocalToken.of_home(settings)
    assert only(report_of(Examined(settings)), "tokens")[0] is OK
    LocalToken.place(settings).chmod(0o644)
    state, found, _ = only(report_of(Examined(settings)), "tokens")
    assert (state, "others may have read" in found) == (FAULT, True)


def test_an_issuer_is_asked_for_its_keys(examined, tmp_path):
    issuer = {"jwt_issuer": "me", "jwt_audience": "you"}
    state, found, _ = only(examined(jwt_keys=f"http://{ELSEWHERE}/keys", **issuer), "tokens")
    assert (state, "cannot be read" in found) == (FAULT, True)
    (tmp_path / "keys.json").write_text('{"keys": []}')
    assert only(examined(jwt_keys=str(tmp_path / "keys.json"), **issuer), "tokens")[0] is FAULT


def test_each_database_that_cards_depend_on_is_looked_at(examined, settings, tmp_path):
    (tmp_path / "there.db").touch()
    urls = {
        "there": SecretStr(f"sqlite:///{tmp_path}/there.db"),
        "gone": SecretStr(f"sqlite:///{tmp_path}/gone.db"),
        "away": SecretStr(f"postgresql+psycopg://reader:{CANARY}@{ELSEWHERE}/dwh"),
        "archive": settings.database_url,
    }
    report = examined(catalog_urls=urls)
    states = {name: only(report, f"database of {name}")[0] for name in urls}
    assert states == {"there": OK, "gone": FAULT, "away": FAULT, "archive": OK}
    assert not (tmp_path / "gone.db").exists()


def test_a_check_that_fails_says_nothing_that_it_does_not_know(tmp_path):
    def failing(_):
        raise RuntimeError(CANARY)

    settings = load_settings(home=tmp_path)
    installation = Installation(Examined(settings), Runtime(settings))
    [found] = _outcome(Check("it", failing, "do this"), installation, [], None)
    assert found == fault("it failed (RuntimeError)", "do this")


@pytest.mark.parametrize("password", [CANARY, "p@ss:w/rd%", "pass word"])
def test_no_secret_is_said_however_it_is_written(settings, password):
    written = quote(password, safe="")
    url = SecretStr(f"postgresql+psycopg://anna:{written}@db/memory")
    mask = Masker.of(settings.model_copy(update={"database_url": url, "qdrant_api_key": SecretStr("k3y-of-qdrant")}))
    said = mask(f"{url.get_secret_value()} {password} {written} k3y-of-qdrant http://u:other@host")
    for secret in (password, written, "k3y-of-qdrant", "other"):
        assert secret not in said


def test_no_password_of_any_url_is_said_whatever_is_away(settings):
    url = f"postgresql+psycopg://role:{CANARY}@{ELSEWHERE}/memory"
    changed = {
        "database_url": SecretStr(url),
        "owner_url": SecretStr(url.replace("role", "owner")),
        "dagster_url": SecretStr(url.replace("psycopg", "psycopg2")),
        "catalog_urls": {"clinic": SecretStr(url), "ward": SecretStr(f"nodriver://u:{CANARY}@h/d")},
        "qdrant_url": f"http://{ELSEWHERE}",
        "qdrant_api_key": SecretStr(CANARY),
        "web_secret": SecretStr(CANARY * 4),
    }
    results = examine(Examined(settings.model_copy(update=changed)))
    assert sum(result.state is FAULT for result in results) >= 6
    assert CANARY not in repr(results)


def test_the_worst_of_all_is_what_counts():
    states = [OK, NOT_APPLICABLE, WARNING]
    assert worst(Result("it", state, "", "") for state in states) is WARNING
    assert worst(Result("it", state, "", "") for state in [*states, FAULT]) is FAULT
    assert worst(Result("it", NOT_APPLICABLE, "", "") for _ in range(1)) is NOT_APPLICABLE


class TestTheCommand:
    def test_ends_well_where_nothing_is_a_fault(self, settings, monkeypatch, capsys):
        code, out, err = runner(settings, monkeypatch, capsys)("doctor")
        assert (code, err) == (0, "")
        assert "PostgreSQL 18" in out
        assert " ok" in out

    def test_has_an_exit_code_of_its_own_for_faults_and_prints_json_alone(self, settings, monkeypatch, capsys):
        run = runner(settings, monkeypatch, capsys)
        monkeypatch.setenv("MEMORY_DATABASE_URL", f"postgresql+psycopg://u:{CANARY}@{ELSEWHERE}/memory")
        monkeypatch.setenv("MEMORY_QDRANT_TIMEOUT", "0")
        code, out, err = run("doctor", "--json")
        assert (code, err) == (FAULT_EXIT_CODE, "")
        found = json.loads(out)
        assert found["state"] == "fault"
        assert {tuple(check) for check in found["checks"]} == {("check", "state", "found", "do")}
        assert {"settings", "archive"} <= {check["check"] for check in found["checks"] if check["state"] == "fault"}
        assert CANARY not in out

    def test_says_what_to_do_beneath_the_table(self, settings, monkeypatch, capsys):
        run = runner(settings, monkeypatch, capsys)
        monkeypatch.setenv("MEMORY_QDRANT_URL", "nonsense")
        code, out, _ = run("doctor")
        assert code == FAULT_EXIT_CODE
        assert "settings: mend it where it is set" in out


def test_every_check_is_documented_in_their_order(settings):
    section = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8").split("## The doctor")[1]
    named = re.findall(r"^\| `(.+?)` \|", section.split("\n## ")[0], re.MULTILINE)
    urls = {"W": SecretStr("sqlite:///w.db")}
    assert named == [check.name for check in checks(settings.model_copy(update={"catalog_urls": urls}))]
