"""The archive records which embedding identity recall uses."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())
