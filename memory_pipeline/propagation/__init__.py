"""From the archive to the index: projection and its audit."""

from memory_pipeline.propagation.audit import AuditReport, Difference, audit, repair
from memory_pipeline.propagation.projector import ProjectionReport, project

__all__ = ["AuditReport", "Difference", "ProjectionReport", "audit", "project", "repair"]
