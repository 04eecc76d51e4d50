"""Privacy reports: a self-contained HTML page about a run, for a model card or a reviewer."""

from pyengine.workbench.report.alternatives import Alternative
from pyengine.workbench.report.content import Attack, PrivacyReport, privacy_report
from pyengine.workbench.report.files import report_data, save_report

__all__ = [
    "Alternative",
    "Attack",
    "PrivacyReport",
    "privacy_report",
    "report_data",
    "save_report",
]
