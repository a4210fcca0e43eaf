"""The archive."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())
