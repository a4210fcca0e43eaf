"""Who asks the HTTP interface, and the services on their behalf."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from memory_pipeline.archive.grants import Principal
from memory_pipeline.cards import WORKSPACE_PATTERN
from memory_pipeline.curation import Curation
from memory_pipeline.web.identity import InvalidToken
from memory_pipeline.web.services import services

_bearer = HTTPBearer(auto_error=False, description="a token of the configured issuer, or the local one of the home")

Workspace = Annotated[str, Path(description="which workspace", pattern=f"^{WORKSPACE_PATTERN}$")]
CardId = Annotated[str, Path(description="which card", min_length=1, max_length=255)]


def caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    """Whom the request's token stands for.

    Raises:
        InvalidToken, IssuerUnavailable: nobody, or it cannot be told.
        TooManyRequests: too many tokens from this address stood for nobody.
    """
    if credentials is None:
        raise InvalidToken("this needs a token: send it as `Authorization: Bearer …`")
    return services(request).identify(credentials.credentials, request.client.host if request.client else "").principal


Asking = Annotated[Principal, Depends(caller)]


def curation(request: Request, asking: Asking) -> Curation:
    """The administration on behalf of who asks."""
    return services(request).curation(asking)


Curating = Annotated[Curation, Depends(curation)]
