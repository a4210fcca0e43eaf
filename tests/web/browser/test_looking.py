"""Looking around in a real browser."""

from __future__ import annotations

from tests.curating import CLINIC, a_creation
from tests.web.browser.conftest import go, sign_in, violations


def test_somebody_who_signs_in_chooses_a_workspace_and_sees_its_cards(visitor, site):
    site.curation.save(CLINIC, a_creation(subject="Paziente attivo", detail="`flag_attivo = TRUE`, vedi *nota*"))

    visitor.goto(f"/w/{CLINIC}/cards?text=paziente")
    assert visitor.url.endswith("/sign-in?to=%2Fw%2Fclinic%2Fcards%3Ftext%3Dpaziente")
    sign_in(visitor)
    visitor.goto(f"/w/{CLINIC}/cards?text=paziente")
    assert violations(visitor) == []
    go(visitor.get_by_role("link", name="mem-0001"))

    assert visitor.get_by_role("heading", level=1).inner_text() == "mem-0001 Paziente attivo"
    assert violations(visitor) == []
