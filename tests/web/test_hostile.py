"""Content that is meant to do harm is shown as text, and requests that are get a clear refusal."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote

import pytest

from memory_pipeline.archive.grants import Role
from memory_pipeline.archive.ingest import ingest
from memory_pipeline.cards import CardContent, Dependency, Family
from memory_pipeline.curation import Curation
from memory_pipeline.edits import Change, Create, Link
from tests.builders import a_session, clarified, declined, promoted
from tests.curating import CLINIC, a_creation, all_away
from tests.web.conftest import csrf
from tests.web.reading import CANARY, HOSTILE, PAYLOADS, assert_harmless
from tests.web.walking import filled, forms, queries, routes

W = f"/w/{CLINIC}"
API = f"/api/v1/workspaces/{CLINIC}"
NAME = HOSTILE[:250]
SOLVED = {"question": HOSTILE, "sql": f"SELECT '{HOSTILE}'", "context": f"# {HOSTILE}\n\n" + "\n\n".join(PAYLOADS)}
OTHER = {"subject": HOSTILE, "detail": f"> {HOSTILE}\n\n* " + "\n* ".join(PAYLOADS), "rationale": HOSTILE}
LARGEST = 1_000_000


@pytest.fixture
def settings(settings):
    """So many requests that none is refused for that."""
    return settings.model_copy(update={"web_requests_per_minute": 1_000_000})


def a_hostile_card(family: Family) -> CardContent:
    texts = SOLVED if family is Family.SOLVED_QUESTION else {**OTHER, "concepts": (NAME,)}
    named = Dependency(*(PAYLOADS[number] for number in (1, 2, 5, 0)))
    return CardContent(family, **texts, database=NAME, schema=NAME, dependencies=(named,))


@pytest.fixture
def hostile(watched) -> Curation:
    """A card of each family, all linked, by somebody whose name is hostile too."""
    Curation(watched).give(CLINIC, NAME, Role.ADMINISTRATOR)
    curation = Curation(watched, NAME)
    for number, family in enumerate(Family):
        links = (Link("mem-0001", NAME),) if number else ()
        curation.save(CLINIC, Create(a_hostile_card(family), links))
    return curation


PATHS = ("%00", "%ff%fe", "%ed%a0%80", "x" * 10_000, "..%2f..%2fetc%2fpasswd", "%2e%2e", "a%0d%0aSet-Cookie:x=y",
         "%25", "%3F%23", "%E2%80%AE", "mem-0001%00", "9" * 5_000, "%20", "%7B%7B7*7%7D%7D")  # fmt: skip  # a table
VALUES = ("%00", "%ff", "%ed%a0%80", "x" * 60_000, "9" * 5_000, "-1", "NaN", "9223372036854775808", "%E2%80%AE", "%5B",
          "0001-01-01", "9999-12-31", "9999-12-31T23:59:59%2B00:00", "%27%22%5C", "%C2%B2")  # fmt: skip  # a table
_CARD = b'{"family": "concept", "subject": "s", "detail": "d", %s}'
BODIES = (
    b"", b"{", b"null", b"[]", b"7", b"NaN", b'{"version": NaN}', b'{"version": %s}' % (b"9" * 5_000),
    b'{"version": 99999999999999999999999, "links": [{"other": "mem-0002", "meaning": "x"}]}', b"[" * 100_000,
    b'{"a":' * 100_000, b'{"\\ud800": 1}', b'{"version": 1, "subject": "\\ud800"}', b'{"version": 1, "database": "\\u0000"}',
    _CARD % b'"rationale": "\\ud800"', _CARD % b'"rationale": "\\u0000"', _CARD % b'"concepts": ["\\u0000"]',
    _CARD % b'"dependencies": [{"table": "\\ud800"}]', _CARD % b'"links": [{"other": "\\u0000", "meaning": "\\ud800"}]',
    _CARD % b'"links": [{"other": "mem-0001", "meaning": "\\u0000"}]',
    b'{"keep": "\\ud800", "keep_version": 1, "other": "\\u0000", "other_version": 1}', b'{"card_id": "\\u0000"}',
    b'{"card_id": "\\ud800"}', b'{"question": "\\ud800\\u0000", "session_id": "\\ud800", "degraded": true}',
    b'{"question": "x", "session_id": "\\u0000", "scope": {"table": "\\u0000"}}', b'{"question": "\xff"}', b"\xff\xfe{\x00",
    '{"question": "x"}'.encode("utf-16"), json.dumps({"question": "a " * 400_000}).encode(),
    json.dumps({str(number): number for number in range(50_000)}).encode(),
)  # fmt: skip  # a table
FORMS = (
    "", "=", "&" * 1_000, "%", "%zz", "%00=%00", "subject=%00&detail=%00", "subject=%ed%a0%80&detail=%ff&action=row",
    "version=" + "9" * 5_000 + "&keep_version=" + "9" * 5_000, "version=99999999999999999999", "version=%C2%B2&limit=%C2%B2",
    "version=1&family=solved_question&question=q&sql=%00", "family=solved_question&question=q&sql=" + "(" * 100_000,
    "keep=%00&card_id=%00&question=%00&session_id=%00&retract=%00&phase=%00", "question=x&session_id=..%2f..%2f&limit=0",
    "question=" + "x" * 1_000_000, "question=x&degraded=1&table=%00&family=%00", "card_id=" + "x" * 100_000,
    "decide.999999999=promote", "decide.1=promote&decide.1=decline&decide.2=x", "retract=1&reason=" + "x" * 1_000_000,
    "phase=9", "retract=1&reason=%00", "&".join(f"f{number}=1" for number in range(100_001)),
    "subject=s&detail=d&" + "&".join(f"link.{n}.other=mem-0001&link.{n}.meaning=m" for n in range(3_000)),
    "subject=s&detail=d&concepts=" + "%0a".join(f"c{n}" for n in range(2_000)), 'subject=s&detail=d&tables="',
    "subject=s&detail=d&tables=" + "x" * 200_000, "version=1&subject=x&take.subject=theirs&was.subject=%00",
)  # fmt: skip  # a table
_PART = b"--x\r\nContent-Disposition: form-data"
MULTIPART = (
    (b"", b"multipart/form-data"), (b"x", b"multipart/form-data; boundary="), (b"--x", b"multipart/form-data; boundary=x"),
    (_PART + b"\r\n\r\na\r\n--x--", b"multipart/form-data; boundary=x"), (b"--x\r\n" * 999, b"multipart/form-data; boundary=x"),
    (_PART + b'; name="csrf"; filename="f"\r\n\r\na\r\n--x--', b"multipart/form-data; boundary=x"),
    (b"--x\r\n" + b"A" * 100_000 + b": b\r\n\r\na\r\n--x--", b"multipart/form-data; boundary=x"),
    (b"x", b"multipart/form-data; boundary=" + b"x" * 5_000), (b"{}", b"application/json"), (b"x", b""), (b"x", b"text/plain"),
    (b"\xff\xfe", b"application/x-www-form-urlencoded"), (b"a=b", b"application/x-www-form-urlencoded; charset=utf-16"),
    (b"x", b"multipart/form-data; boundary=\xe9"), (b"--x--junk", b"multipart/form-data; boundary=x"),
)  # fmt: skip  # a table


def refused_or_shown(answer, asked: object) -> None:
    """It was no surprise to anybody, and what it says of it acts on nothing."""
    assert answer.status_code < 500, asked
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert_harmless(answer.text)
    elif answer.status_code >= 400:
        assert set(answer.json()) == {"error"}
        assert {"kind", "message"} <= set(answer.json()["error"])
    assert len(answer.headers.get_list("set-cookie")) <= 1


IDS = ("mem-0001", "mem-0002", "mem-0003", "sq-0001")


def shown(answer, status: int = 200):
    """The page of an answer, which acts on nothing that content says."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return assert_harmless(answer.text)


def hidden(html: str) -> dict[str, str]:
    """What a page's forms carry that nobody sees."""
    return dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', html))


@pytest.mark.parametrize("card_id", IDS)
def test_a_hostile_card_is_shown_as_text_wherever_it_is_shown(admin, hostile, card_id):
    detail = shown(admin.get(f"{W}/cards/{card_id}"))
    edit = shown(admin.get(f"{W}/cards/{card_id}/edit", params={"link": HOSTILE}))
    delete = shown(admin.get(f"{W}/cards/{card_id}/delete"))

    for page in (detail, edit, delete):
        for payload in PAYLOADS:
            assert payload in page.said
    assert all(attributes.get("rel") for tag, attributes in detail.elements if attributes.get("href", "")[:4] == "http")


def test_hostile_cards_are_texts_in_lists_of_every_kind(admin, hostile, watched):
    listed = shown(admin.get(f"{W}/cards"))
    searched = shown(admin.get(f"{W}/cards", params=dict.fromkeys(["text", "concept", "table", "column"], NAME)))
    refused = shown(admin.get(f"{W}/cards", params=dict.fromkeys(["sort", "state", "after", "page"], HOSTILE)), 400)
    hostile.save(CLINIC, Create(a_hostile_card(Family.CONCEPT)))
    duplicates = shown(admin.get(f"{W}/duplicates"))
    merge = shown(admin.get(f"{W}/merge", params={"keep": "mem-0001", "other": "mem-0004"}))
    overview = shown(admin.get(f"{W}/overview", params={"hours": HOSTILE}))

    for page in (listed, duplicates, merge):
        assert PAYLOADS[0] in page.said
        assert PAYLOADS[1] in page.said
    assert NAME.strip() in searched.said
    assert HOSTILE in refused.said
    assert CLINIC in overview.said


def test_what_is_pending_is_text(admin, hostile, watched):
    all_away(watched)
    hostile.save(CLINIC, Change("mem-0001", hostile.detail(CLINIC, "mem-0001").version, {"detail": HOSTILE}))

    assert PAYLOADS[0] in shown(admin.get(f"{W}/pending")).said
    assert PAYLOADS[0] in shown(admin.get(f"{W}/cards")).said
    shown(admin.get(f"{W}/overview"))


def test_recall_shows_questions_and_hits_as_text(admin, hostile):
    mark = csrf(admin.get(f"{W}/recall").text)
    sent = {"csrf": mark, "question": HOSTILE, "links": "yes"}

    found = shown(admin.post(f"{W}/recall", data=sent))
    empty = shown(
        admin.post(f"{W}/recall", data={**sent, "session_id": HOSTILE, "database": NAME, "table": NAME, "limit": "1"})
    )
    refused = shown(admin.post(f"{W}/recall", data={**sent, "limit": HOSTILE, "family": HOSTILE}), 400)

    assert "mem-0001" in found.said
    for payload in PAYLOADS:
        assert payload in found.said
        assert payload in empty.said
        assert payload in refused.said


def test_what_somebody_typed_comes_back_as_text_when_it_is_refused(admin, hostile):
    mark = csrf(admin.get(f"{W}/cards").text)
    typed = {"csrf": mark, "version": "0", "family": "concept", "subject": HOSTILE, "detail": "", "tables": f'"{HOSTILE}',
             "dialect": HOSTILE, "link.0.other": HOSTILE, "link.0.meaning": HOSTILE}  # fmt: skip  # one form
    stale = {**typed, "detail": HOSTILE, "tables": "", "link.0.other": "", "link.0.meaning": "", "version": "1"}

    refused = shown(admin.post(f"{W}/new-card", data=typed), 400)
    row = assert_harmless(admin.post(f"{W}/new-card", data={**typed, "action": "row"}).text)
    hostile.save(CLINIC, Change("mem-0001", hostile.detail(CLINIC, "mem-0001").version, {"rationale": f"x {HOSTILE}"}))
    conflict = shown(admin.post(f"{W}/cards/mem-0001/edit", data=stale), 409)
    deleting = shown(admin.post(f"{W}/cards/mem-0001/delete", data={"csrf": mark, "version": "1"}), 409)
    gone = shown(admin.post(f"{W}/cards/{CANARY}/edit", data=stale), 409)

    for page in (refused, row, conflict, gone):
        assert HOSTILE in page.said
    assert NAME.strip()[:100] in conflict.said  # who was faster
    assert NAME.strip()[:100] in deleting.said


def test_sessions_and_reviews_show_what_ledgers_hold_as_text(admin, watched):
    said = (
        clarified(1, HOSTILE, HOSTILE, rationale=HOSTILE, concepts=(NAME,), tables=(NAME,)),
        clarified(2, f"a {HOSTILE}", HOSTILE, rationale=HOSTILE),
        clarified(3, f"b {HOSTILE}", f"* {HOSTILE}"),
        promoted(4, 2),
        declined(5, 3, rationale=HOSTILE),
    )
    name = "a<b>'\"&canary=x"
    a_session(watched.settings.sessions, *said, session=name, status="open", question=HOSTILE)
    ingest(watched.database, CLINIC, watched.settings, watched.identity)
    at = f"{W}/sessions/{quote(name)}"
    asked = admin.get(f"{at}/correct", params={"retract": "4"})

    pages = {
        "sessions": shown(admin.get(f"{W}/sessions")),
        "session": shown(admin.get(at)),
        "review": shown(admin.get(f"{at}/review")),
        "correct": shown(asked),
    }
    taking_back = {**hidden(asked.text), "reason": HOSTILE}
    pages["corrected"] = shown(admin.post(f"{at}/correct", data=taking_back))
    deciding = {**hidden(admin.get(f"{at}/review").text), "decide.1": "promote"}
    pages["reviewed"] = shown(admin.post(f"{at}/review", data=deciding))

    assert "a<b>" in pages["sessions"].said
    for name in ("session", "review"):
        for payload in PAYLOADS:
            assert payload in pages[name].said, name
    shown(admin.get(f"{W}/overview"))


@pytest.mark.parametrize(
    "path", [f"{W}/cards/{{}}", f"{W}/sessions/{{}}", "/{}", f"{W}/{{}}", "/static/{}", "/w/{}/cards"]
)
def test_an_address_that_is_content_is_shown_as_text_if_at_all(admin, path):
    answer = admin.get(path.format("%3Cscript%3Ecanary()%3C%2Fscript%3E%22%20onload=%22canary"))

    assert 400 <= answer.status_code < 500 or answer.status_code == 503
    assert_harmless(answer.text)


def test_a_session_of_a_name_in_no_encoding_stops_no_page(admin, watched):
    a_session(watched.settings.sessions, clarified(1), status="open")
    unreadable = os.fsdecode(bytes(watched.settings.sessions / CLINIC) + b"/caf\xe9")
    a_session(watched.settings.sessions, clarified(1), session="coffee", status="open").rename(unreadable)
    ingest(watched.database, CLINIC, watched.settings, watched.identity)

    for page in ("sessions", "overview", "sessions/session-1"):
        shown(admin.get(f"{W}/{page}"))


@pytest.mark.parametrize("family", [Family.CONCEPT, Family.SOLVED_QUESTION])  # the two forms that there are
@pytest.mark.parametrize("letter", ["x", "[", "<", "a\n"])
def test_the_longest_texts_of_every_family_are_shown_in_full(admin, watched, family, letter):
    long = (letter * LARGEST)[:LARGEST]
    named = ("question", "context") if family is Family.SOLVED_QUESTION else ("subject", "detail", "rationale")
    others = {"sql": "SELECT 1"} if family is Family.SOLVED_QUESTION else {}
    made = Curation(watched).save(
        CLINIC, Create(CardContent(family, **dict.fromkeys(named, long), **others)), propagate=False
    )

    for page in ("", "/edit", "/delete"):
        assert letter * 50_000 in shown(admin.get(f"{W}/cards/{made.card_id}{page}")).said
    shown(admin.get(f"{W}/cards"))


class TestRequests:
    """What is sent to do harm, over every route: refused with a clear 4xx, or taken for the text that it is."""

    @pytest.fixture
    def everything(self, admin, program, watched, curation):
        """Asks any route in the right way, as somebody who may, with a card and a session there."""
        a_session(watched.settings.sessions, clarified(1), clarified(2, "o", "x"), status="open")
        for subject in ("one", "two"):
            curation.save(CLINIC, a_creation(subject=subject), propagate=False)
        return lambda method, path, **sent: (program if path.startswith("/api/") else admin).request(
            method, path, **sent
        )

    def test_paths(self, everything, admin, client):
        mark = csrf(admin.get("/").text)
        form = {"csrf": mark, "family": "concept", "subject": "s", "detail": "d", "version": "9", "retract": "1"}
        bodies = {"POST": {"data": form}, "PATCH": {"json": {"version": 9}}}
        for method, path in routes(client.app):
            body = {} if path.startswith("/sign-out") else bodies.get(method, {})
            for name in re.findall(r"{(\w+)", path):
                for value in PATHS:
                    refused_or_shown(everything(method, filled(path, **{name: value}), **body), (method, path, value))

    @pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:30])
    def test_queries(self, everything, client, value):
        asked = ("text", "database", "after", "size", "page", "limit", "offset", "updated_after", "version", "keep",
                 "other", "hours", "open", "retract", "phase", "link", "to", "family", "flag")  # fmt: skip  # names
        usual = {"keep": "mem-0001", "other": "mem-0002", "retract": "1", "version": "9"}
        for method, path, names in queries(client.app):
            if path not in {"/metrics", "/ready"}:
                for name in names or asked:
                    others = "&".join(f"{key}={each}" for key, each in usual.items() if key != name)
                    answer = everything(method, f"{filled(path)}?{name}={value}&{others}")
                    refused_or_shown(answer, (method, path, name))

    @pytest.mark.parametrize("body", BODIES, ids=lambda body: ascii(body[:40]))
    def test_json(self, everything, client, body):
        for method, path in routes(client.app):
            if method in {"POST", "PATCH"} and path.startswith("/api/"):
                answer = everything(method, filled(path), content=body, headers={"Content-Type": b"application/json"})
                refused_or_shown(answer, (method, path))
                assert answer.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("kind", [b"text/plain", b"", b"application/json; charset=utf-16", b"a/b/c;;=\xe9"])
    def test_json_that_is_not_called_so(self, everything, client, kind):
        for method, path in routes(client.app):
            if method in {"POST", "PATCH"} and path.startswith("/api/"):
                for body in (b'{"question": "x"}', b"\xff", b""):
                    answer = everything(method, filled(path), content=body, headers={"Content-Type": kind})
                    refused_or_shown(answer, (method, path))

    @pytest.mark.parametrize("body", FORMS, ids=lambda body: ascii(body[:40]))
    def test_forms(self, everything, admin, client, body):
        mark = csrf(admin.get("/").text)
        usual = "family=concept&keep=mem-0001&other=mem-0002&keep_version=9&other_version=9&question=q&retract=1"
        for path in forms(client.app):
            if path != "/sign-out":
                for sent in (f"csrf={mark}&{body}", f"csrf={mark}&{body}&{usual}"):
                    kind = {"Content-Type": "application/x-www-form-urlencoded"}
                    refused_or_shown(everything("POST", filled(path), content=sent.encode(), headers=kind), path)

    @pytest.mark.parametrize(
        "charset", ["utf-7", "utf-16", "idna", "punycode", "undefined", "unicode_escape", "hex", "\xe9"]
    )
    def test_forms_in_encodings_of_their_own(self, everything, admin, client, charset):
        mark = csrf(admin.get("/").text)
        kind = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}".encode("latin-1")}
        for path in forms(client.app):
            for name in ("question", "subject", "reason"):
                for value in (b"+2AA-", b"\\ud800", b"a.b\xff"):
                    fields = {b"csrf": mark.encode(), b"family": b"concept", name.encode(): value}
                    body = b"".join(
                        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % each
                        for each in fields.items()
                    )
                    if path != "/sign-out":
                        refused_or_shown(everything("POST", filled(path), content=body + b"--x--", headers=kind), path)

    @pytest.mark.parametrize(("body", "kind"), MULTIPART, ids=lambda given: ascii(given[:30]))
    def test_what_is_no_form(self, everything, client, body, kind):
        for path in forms(client.app):
            answer = everything("POST", filled(path), content=body, headers={"Content-Type": kind})
            assert 400 <= answer.status_code < 500, path
            assert_harmless(answer.text)

    def test_what_is_too_much_is_refused_whatever_it_says_of_its_length(self, everything, client):
        def pieces():
            for _ in range(10):
                yield b"x" * 1_000_000

        for method, path in routes(client.app):
            if method in {"POST", "PATCH"}:
                for sent in (
                    {"content": b"x" * 10_000_000},
                    {"content": pieces()},
                    {"content": pieces(), "headers": {"Content-Length": "5"}},
                    {"content": b"", "headers": {"Content-Length": "99999999"}},
                    {"content": pieces(), "headers": {"Content-Length": b"\xb2"}},
                    {"content": pieces(), "headers": {"Content-Length": "9" * 5_000}},
                ):
                    answer = everything(method, filled(path), **sent)
                    assert answer.status_code == 413, (path, sent)
                    assert "4,000,000 bytes" in answer.text

    def test_what_is_no_number_is_no_version(self, program, everything):
        for version in ("NaN", "Infinity", "1e400", "1.5", "-1"):
            answer = program.patch(f"{API}/cards/mem-0001", content=f'{{"version": {version}, "detail": "x"}}'.encode(),
                                   headers={"Content-Type": "application/json"})  # fmt: skip  # one request
            assert answer.status_code == 400, version


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def test_every_answer_has_the_headers_that_bind_browsers(admin, program, watched, monkeypatch):
    asked = [
        admin.get(f"{W}/cards"),
        admin.get("/"),
        admin.get("/sign-in"),
        admin.get("/nothing"),
        admin.get(f"{W}/cards/nothing"),
        admin.put(f"{W}/cards"),
        admin.post(f"{W}/merge"),
        admin.post(f"{W}/merge", content=b"x" * 10_000_000),
        admin.get("/static/style.css"),
        admin.get("/static/nothing"),
        admin.get("/health"),
        admin.get("/metrics"),
        admin.get("/", headers={"Host": "evil.example"}),
        program.get(f"{API}/cards"),
        program.get(f"{API}/nothing"),
        program.get("/api/v1/openapi.json"),
    ]
    monkeypatch.setattr(type(admin.app.state.services), "role", lambda *_: 1 / 0)
    asked.append(admin.get(f"{W}/cards"))

    assert {answer.status_code for answer in asked} == {200, 400, 403, 404, 405, 413, 500}
    for answer in asked:
        assert dict(answer.headers) | {name.lower(): value for name, value in HEADERS.items()} == dict(answer.headers)
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
        assert policy.pop("default-src") == policy.pop("base-uri") == policy.pop("frame-ancestors") == "'none'"
        assert set(policy.values()) == {"'self'"}
        assert ("no-store" in answer.headers.get("Cache-Control", "")) is ("/static/" not in str(answer.url))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "127.0.0.1@evil.example", "localhost.",
             "[::2]", "127.0.0.2", "localhost:x", "\xe9"],
)  # fmt: skip  # one group a line
def test_under_another_name_nothing_answers(admin, program, host):
    for answer in (
        admin.get(f"{W}/cards", headers={"Host": host.encode("latin-1")}),
        program.get(f"{API}/cards", headers={"Host": host.encode("latin-1")}),
        admin.get("/health", headers={"Host": host.encode("latin-1")}),
    ):
        assert answer.status_code == 400
        assert CLINIC not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST"])
def test_under_its_own_names_it_answers(admin, host):
    assert admin.get("/health", headers={"Host": host}).status_code == 200


def test_methods_that_no_page_has_change_nothing_and_tell_no_other_site_anything(everything_asked):
    for answer in everything_asked:
        assert answer.status_code < 500
        assert not {name for name in answer.headers if name.startswith("access-control-")}
        if answer.request.method == "HEAD":
            assert answer.content == b""


@pytest.fixture
def everything_asked(admin, curation, watched):
    """The answers of every route to methods that are not its own, as another site would have them asked."""
    a_session(watched.settings.sessions, clarified(1), status="open")
    curation.save(CLINIC, a_creation(), propagate=False)
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    yield [
        admin.request(method, filled(path), headers=preflight)
        for path in sorted({path for _, path in routes(admin.app)})
        for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "PROPFIND", "X")
    ]
    assert curation.detail(CLINIC, "mem-0001").version == 1
