"""What was seen of a workspace's index is kept: its last audit, and how much of it was pending when."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())
