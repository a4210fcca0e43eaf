"""The files of a deployment name nothing that is not there, and keep what they promise."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from dagster._cli import create_dagster_cli
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import create_dagster_webserver_cli

from memory_pipeline.cli import cli
from memory_pipeline.settings import Settings
from tests.deploying import COMPOSE, DEPLOY, SERVICES, made_secrets, settings_of
from tests.processes import CHECKOUT

ONE_SHOT = "migrate"
RUNNING = sorted(set(SERVICES) - {ONE_SHOT})
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
PROGRAMS = {
    "memory-pipeline": cli,
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": create_dagster_webserver_cli(),
}
MANIFESTS = [
    manifest
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    if "kind" in manifest
]
PODS = [each["spec"]["template"]["spec"] for each in MANIFESTS if each["kind"] in {"Deployment", "Job"}]
VALUES = yaml.safe_load((DEPLOY / "kubernetes" / "dagster-values.yaml").read_text(encoding="utf-8"))
SETTINGS = {f"MEMORY_{name.upper()}" for name in Settings.model_fields}


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command line of our own image, a shell's taken apart; with the service that it is of."""
    for name, service in SERVICES.items():
        lines = [service.get("command", []), service.get("healthcheck", {}).get("test", [])[1:]]
        for line in filter(None, lines) if service["image"].startswith("memory-pipeline") else []:
            words = line[1:] if line[:1] == ["/app/deploy/entrypoint.sh"] else line
            shell = words[:2] == ["sh", "-c"]
            yield from ((name, part.split()) for part in words[2].split(" && ")) if shell else [(name, words)]


def pods() -> Iterator[tuple[str, list[str]]]:
    """Each command line of the pods of Kubernetes, with the name of its container."""
    yield from ((each["name"], each["args"]) for pod in PODS for each in pod["containers"])


def environment(service: str) -> dict[str, str]:
    return SERVICES[service].get("environment", {})


@pytest.mark.parametrize("file", sorted(DEPLOY.rglob("*.yaml")), ids=lambda file: file.name)
def test_every_file_parses(file: Path):
    assert all(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def test_what_services_refer_to_is_declared():
    for service in SERVICES.values():
        named = {volume.split(":")[0] for volume in service.get("volumes", []) if re.match(r"[a-z]", volume)}
        assert named <= COMPOSE["volumes"].keys()
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
        assert service.get("depends_on", {}).keys() <= SERVICES.keys()


def test_compose_itself_takes_the_file_where_it_is_installed():
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        return
    options = ["--file", DEPLOY / "compose.yaml", "--env-file", DEPLOY / "compose.env.example"]
    subprocess.run(["docker", "compose", *options, "config", "--quiet"], check=True)


def test_every_variable_that_compose_is_to_be_given_is_in_the_example():
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    needed = set(re.findall(r"(?<!\$)\$\{(\w+):\?", text))
    offered = set(re.findall(r"^(\w+)=", (DEPLOY / "compose.env.example").read_text(encoding="utf-8"), re.MULTILINE))
    assert needed <= offered <= set(re.findall(r"(?<!\$)\$\{(\w+):", text))


def test_every_setting_that_is_named_exists():
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    named = {name for path in files for name in re.findall(r"MEMORY_[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= SETTINGS
    assert {name.upper() for name in COMPOSE["secrets"] if name.startswith("memory_")} <= SETTINGS


def test_every_other_setting_can_be_given_to_all_services_of_the_pipeline_in_one_file():
    ours = [service for service in SERVICES.values() if service["image"].startswith("memory-pipeline")]
    assert len(ours) == 5
    assert all(service["env_file"] == [{"path": "settings.env", "required": False}] for service in ours)


def test_nothing_that_is_secret_stands_in_an_environment():
    for service in SERVICES.values():
        given = service.get("environment", {})
        assert not [
            name for name in given if re.search("SECRET$|KEY$|PASSWORD$|DATABASE_URL|OWNER_URL|DAGSTER_URL", name)
        ]


def test_only_those_get_a_secret_who_need_it():
    holders = {
        name: {s for s, service in SERVICES.items() if name in service["secrets"]} for name in COMPOSE["secrets"]
    }
    working = {"code", "daemon", "webserver"}
    assert holders == {
        "postgres_password": {"postgres"},
        "postgres_owner_password": {"postgres"},
        "postgres_runtime_password": {"postgres"},
        "postgres_dagster_password": {"postgres"},
        "memory_owner_url": {"migrate"},
        "memory_dagster_url": {"migrate", *working},
        "memory_database_url": {"migrate", "page", *working},
        "memory_qdrant_api_key": {"migrate", "page", "qdrant", *working},
        "memory_web_secret": {"page"},
    }


def test_secrets_are_made_once_and_let_nobody_in_but_their_owner(tmp_path: Path):
    secrets = tmp_path / "secrets"
    first = subprocess.run([DEPLOY / "make-secrets", secrets], check=True, capture_output=True, text=True)
    found = {file.name: file.read_text() for file in secrets.iterdir()}
    assert found.keys() == COMPOSE["secrets"].keys()
    assert {name: Path(secret["file"]) for name, secret in COMPOSE["secrets"].items()} == {
        name: Path("secrets") / name for name in found
    }
    assert secrets.stat().st_mode & 0o077 == 0
    assert len(set(found.values())) == len(found)
    assert not any(value in first.stdout + first.stderr for value in found.values())

    again = subprocess.run([DEPLOY / "make-secrets", secrets], check=True, capture_output=True, text=True)

    assert again.stdout == ""
    assert {file.name: file.read_text() for file in secrets.iterdir()} == found


def test_the_settings_take_what_the_secrets_hold(tmp_path: Path):
    settings = settings_of(made_secrets(tmp_path / "secrets", 5432), tmp_path, qdrant_url="http://qdrant:6333")
    assert not settings.embedded_archive
    assert settings.web_secret
    assert settings.qdrant_api_key


def test_git_ignores_the_secrets():
    ignored = (CHECKOUT / ".gitignore").read_text().splitlines()
    assert "deploy/secrets/" in ignored
    assert {".env", "deploy/settings.env", "*.dump", "memory-backup.tar.gz"} <= set(ignored)


@pytest.mark.parametrize(("service", "words"), [*commands(), *pods()], ids=lambda value: str(value)[:40])
def test_every_command_and_option_exists(service: str, words: list[str]):
    if words[0] == "python":
        compile(words[2], service, "exec")
        return
    command, rest = PROGRAMS[words[0]], words[1:]
    while isinstance(command, click.Group):
        command, rest = command.commands[rest[0]], rest[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= options


@pytest.mark.parametrize("service", RUNNING)
def test_what_runs_has_a_health_check_a_limit_and_comes_again(service: str):
    given = SERVICES[service]
    assert given["healthcheck"]["test"][0] == "CMD"
    assert given["restart"] == "unless-stopped"
    assert given["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}


def test_nothing_of_the_pipeline_starts_before_the_tables_are_there():
    for service in ("code", "daemon", "webserver", "page"):
        assert SERVICES[service]["depends_on"][ONE_SHOT] == {"condition": "service_completed_successfully"}
    conditions = {
        c["condition"] for s in SERVICES.values() for n, c in s.get("depends_on", {}).items() if n != ONE_SHOT
    }
    assert conditions == {"service_healthy"}


def test_ports_are_published_on_the_loopback_address_alone():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"webserver": ["127.0.0.1:3000:3000"], "page": ["127.0.0.1:8000:8000"]}


def test_images_are_pinned_and_qdrant_is_new_enough():
    images = {name: service["image"] for name, service in SERVICES.items()}
    images["base"] = re.search(r"^FROM (\S+)$", DOCKERFILE, re.MULTILINE)[1]
    for image in images.values():
        assert re.search(r":(\$\{VERSION:-)?v?\d+\.\d+", image), image
    assert tuple(map(int, re.search(r":v(\d+)\.(\d+)", images["qdrant"]).groups())) >= (1, 19)
    assert images["postgres"].startswith("postgres:18.")
    assert "postgres:/var/lib/postgresql" in SERVICES["postgres"]["volumes"]


def test_the_version_of_the_image_is_that_of_the_library():
    version = re.search(r'^version = "(.*)"$', (CHECKOUT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert SERVICES["code"]["image"] == f"memory-pipeline:${{VERSION:-{version}}}"
    images = [each["image"] for pod in PODS for each in pod["containers"]]
    assert set(images) == {f"registry.example/memory-pipeline:{version}"}
    assert VALUES["dagster-user-deployments"]["deployments"][0]["image"]["tag"] == version


def test_pods_read_what_belongs_to_the_user_of_the_image_and_may_do_nothing_more():
    user = int(re.search(r"^ARG USER_ID=(\d+)$", DOCKERFILE, re.MULTILINE)[1])
    [deployment] = VALUES["dagster-user-deployments"]["deployments"]
    of_runs = VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["podSpecConfig"]
    contexts = [*(pod["securityContext"] for pod in PODS), deployment["podSecurityContext"], of_runs["securityContext"]]
    assert [(given["runAsUser"], given["fsGroup"]) for given in contexts] == [(user, user)] * 4
    for pod in PODS:
        mounted = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == mounted
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_what_pods_refer_to_is_declared():
    kinds = {each["kind"]: each for each in MANIFESTS}
    volumes = [volume for pod in PODS for volume in pod["volumes"]]
    claims = {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
    assert claims == {kinds["PersistentVolumeClaim"]["metadata"]["name"]}
    labels = kinds["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"] == kinds["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    [web] = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    hosts = next(each["value"] for each in web["env"] if each["name"] == "MEMORY_WEB_HOSTS")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert web[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": hosts}]


def test_the_image_is_made_of_what_is_there_and_runs_as_nobody_special():
    sources = [word for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()]
    let_through = (CHECKOUT / ".dockerignore").read_text().splitlines()
    assert sources
    for source in sources:
        assert (CHECKOUT / source).exists(), source
        assert any(source == line[1:] or source.startswith(f"{line[1:]}/") for line in let_through if line[0:1] == "!")
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["memory"]
    for name in ("migrate", "code", "daemon", "webserver", "page"):
        assert SERVICES[name]["read_only"]
        assert SERVICES[name]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("script", ["entrypoint.sh", "make-secrets"])
def test_scripts_are_read_by_a_plain_shell(script: str):
    assert (DEPLOY / script).stat().st_mode & 0o111
    subprocess.run(["sh", "-n", DEPLOY / script], check=True)


def test_the_entrypoint_hands_on_the_one_secret_and_the_command(tmp_path: Path):
    (tmp_path / "memory_dagster_url").write_text("postgresql+psycopg2://d@db/dagster")
    (tmp_path / "memory_web_secret").write_text("never in an environment")
    given = {"MEMORY_SECRETS_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run([DEPLOY / "entrypoint.sh", "env"], env=given, capture_output=True, text=True, check=True)
    assert "MEMORY_DAGSTER_URL=postgresql+psycopg2://d@db/dagster\n" in ran.stdout
    assert "never in an environment" not in ran.stdout
    failed = subprocess.run([DEPLOY / "entrypoint.sh", "sh", "-c", "exit 7"], env=given, check=False)
    assert failed.returncode == 7


def test_qdrant_is_given_its_key_from_the_file(tmp_path: Path):
    (tmp_path / "entrypoint.sh").write_text('#!/bin/sh\nprintf %s "$QDRANT__SERVICE__API_KEY"\n')
    (tmp_path / "entrypoint.sh").chmod(0o755)
    (tmp_path / "memory_qdrant_api_key").write_text("key")
    shell, option, script = SERVICES["qdrant"]["entrypoint"]
    script = script.replace("$$", "$").replace("/run/secrets", str(tmp_path))
    ran = subprocess.run([shell, option, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "key"


def test_an_archive_of_these_settings_needs_an_issuer_and_is_given_one():
    given = {name: value for name, value in environment("page").items() if name.startswith("MEMORY_JWT_")}
    required = {name for name, value in given.items() if ":?" in value}
    assert required == {"MEMORY_JWT_ISSUER", "MEMORY_JWT_AUDIENCE", "MEMORY_JWT_KEYS"}


def test_what_kubernetes_is_told_of_dagster_is_what_the_other_set_ups_are_told():
    ours = yaml.safe_load((CHECKOUT / "memory_pipeline" / "dagster.yaml").read_text(encoding="utf-8"))
    daemon = VALUES["dagsterDaemon"]
    assert _in_snakes(daemon["runCoordinator"]["config"]["queuedRunCoordinator"]) == {
        **ours["run_coordinator"]["config"],
        "max_concurrent_runs": ours["concurrency"]["runs"]["max_concurrent_runs"],
        "tag_concurrency_limits": ours["concurrency"]["runs"]["tag_concurrency_limits"],
    }
    assert _in_snakes(daemon["runMonitoring"]) == ours["run_monitoring"]
    kept = {kind: _in_snakes(VALUES["retention"][kind]) for kind in ("schedule", "sensor")}
    assert kept == ours["retention"]
    assert VALUES["telemetry"] == ours["telemetry"]
    (code,) = VALUES["dagster-user-deployments"]["deployments"]
    command = SERVICES["code"]["command"]
    assert code["dagsterApiGrpcArgs"] == command[command.index("--module-name") : command.index("--log-level")]
    assert {entry["name"] for entry in code["env"]} <= SETTINGS


def _in_snakes(values: dict[str, object]) -> dict[str, object]:
    """Keys of a chart as Dagster spells them."""
    return {re.sub("([A-Z])", r"_\1", key).lower(): value for key, value in values.items()}


def test_the_source_distribution_carries_the_deployment():
    assert '"deploy"' in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
