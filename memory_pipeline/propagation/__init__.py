"""From the archive to the index: projection, its audit, and rebuilding."""

from memory_pipeline.propagation.audit import audit
from memory_pipeline.propagation.differences import AuditReport, Difference
from memory_pipeline.propagation.projector import ProjectionReport, project
from memory_pipeline.propagation.rebuild import RebuildReport, rebuild
from memory_pipeline.propagation.repair import repair

__all__ = [
    "AuditReport",
    "Difference",
    "ProjectionReport",
    "RebuildReport",
    "audit",
    "project",
    "rebuild",
    "repair",
]
