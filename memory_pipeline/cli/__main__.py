"""`python -m memory_pipeline.cli` is the command `memory-pipeline`."""

from memory_pipeline.cli import main

main()
