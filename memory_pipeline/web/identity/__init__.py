"""Who is it: bearer tokens, and the cookie that stands for one on pages."""

from memory_pipeline.web.identity.authority import Authority, Identity, InvalidToken, IssuerUnavailable
from memory_pipeline.web.identity.issued import IssuedTokens
from memory_pipeline.web.identity.local import LocalToken
from memory_pipeline.web.identity.sessions import Sessions

__all__ = ["Authority", "Identity", "InvalidToken", "IssuedTokens", "IssuerUnavailable", "LocalToken", "Sessions"]
