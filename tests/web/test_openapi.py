"""The interface as its description has it: whatever that allows is answered as it says, and never by an error of ours."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from starlette.testclient import TestClient

from memory_pipeline.curation import Curation
from memory_pipeline.web import create_app
from memory_pipeline.web.identity import LocalToken
from memory_pipeline.web.protection import Rate
from memory_pipeline.web.services import Services
from tests.conftest import drop_database, make_database, settings_of
from tests.curating import CLINIC, a_creation, a_runtime, a_workspace
from tests.web.conftest import HOST, TOKEN

BEARER = {"Authorization": f"Bearer {TOKEN}"}
DESCRIPTION = "/api/v1/openapi.json"
load_all_checks()
# A description says what a request looks like, and not which fields a family of cards needs: what it allows may be
# refused as invalid all the same. That the refusal is the documented one, the other checks hold.
CHECKED = [check for check in CHECKS.get_all() if check.__name__ != "positive_data_acceptance"]


@pytest.fixture(scope="module")
def described_app(postgres, superuser, migrated_template, tmp_path_factory):
    """The interface over one archive for the whole file, with cards that requests may meet."""
    name = make_database(superuser, owner="memory_owner", template=migrated_template)
    with a_runtime(settings_of(postgres, name, tmp_path_factory.mktemp("openapi"))) as runtime:
        runtime.settings = runtime.settings.model_copy(
            update={"web_requests_per_minute": 1_000_000, "web_hosts": ("testserver",)}
        )
        a_workspace(runtime)
        for number in range(3):
            Curation(runtime).save(CLINIC, a_creation(subject=f"card {number}"))
        services = Services.of(runtime, LocalToken(TOKEN, runtime.settings.acting_principal))
        object.__setattr__(services, "refusals", Rate(1_000_000))
        yield create_app(services)
    drop_database(superuser, name)


@pytest.fixture(scope="module")
def described(described_app):
    for operations_of in described_app.openapi()["paths"].values():  # which the application keeps
        for parameter in (each for operation in operations_of.values() for each in operation.get("parameters", ())):
            if parameter["name"] == "workspace":  # generated ones would meet nothing but 404
                parameter["schema"] = {"type": "string", "enum": [CLINIC]}
    found = schemathesis.openapi.from_asgi(DESCRIPTION, described_app)
    found.config.update(headers=BEARER)
    return found


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_a_documented_one(described, mode):
    for found in described.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and operation.label == "GET /api/v1/workspaces":
            continue  # it takes nothing that could be wrong

        @settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy(generation_mode=mode))
        def asked(case):
            case.call_and_validate(checks=CHECKED)

        asked()


@pytest.fixture(scope="module")
def description(described_app):
    with TestClient(described_app, base_url=HOST) as client:
        return client.get(DESCRIPTION).json()


def operations(description):
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


class TestDescription:
    def test_names_every_operation_and_what_it_takes(self, description):
        names = [operation["operationId"] for _, operation in operations(description)]

        assert len(set(names)) == len(names) == 13
        for name, operation in operations(description):
            assert operation["summary"], name
            assert operation["description"], name
            assert operation["security"] == [{"HTTPBearer": []}], name

    def test_documents_every_answer_with_its_body(self, description):
        for name, operation in operations(description):
            assert set(operation["responses"]) == {
                *("200", "400", "401", "403", "404", "408", "409", "413", "429", "503"),
            }, name
            for status, response in operation["responses"].items():
                body = response["content"]["application/json"]["schema"]
                assert body, (name, status)
                assert (body == {"$ref": "#/components/schemas/FailureBody"}) is (status != "200"), (name, status)


@pytest.mark.parametrize("said", ["0", "1e9", "yesterday", "2026-01-31", "2026-01-31T12:00"])
def test_a_moment_is_one_with_its_zone_and_no_number(program, said):
    answer = program.get(f"/api/v1/workspaces/{CLINIC}/cards", params={"updated_before": said})

    assert answer.status_code == 400
    assert set(answer.json()["error"]["faults"]) == {"updated_before"}
