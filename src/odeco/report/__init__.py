"""Reports: a fitted model as one HTML file that needs nothing else."""

from __future__ import annotations

from odeco.report.explanations import Finding, findings
from odeco.report.render import render_report, write_report

__all__ = ["Finding", "findings", "render_report", "write_report"]
