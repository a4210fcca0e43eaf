"""Searches find ß by ss and ss by ß, and take all apostrophes for one."""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())
