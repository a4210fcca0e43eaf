"""What is pending keeps since when it is, however often it changes meanwhile."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())
