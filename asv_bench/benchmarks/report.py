"""Privacy reports: the numbers of a page, and the page itself."""

from __future__ import annotations

import pyengine as pe
from pyengine.report import privacy_report

from .cold import clear_cache


class Report:
    """DP-SGD without rows for groups, which ask the lattice engine."""

    timeout = 300.0

    def setup(self) -> None:
        self.run = pe.dp_sgd(1.0, "256/60000", 2344)
        self.report = privacy_report(self.run, 1e-5, group_sizes=[])
        self.page = self.report.html()

    def time_estimates(self) -> None:
        clear_cache()
        privacy_report(self.run, 1e-5, group_sizes=[], proven=False)

    def time_proofs(self) -> None:
        clear_cache()
        privacy_report(self.run, 1e-5, group_sizes=[])

    def time_page(self) -> None:
        self.report.html()

    def track_kilobytes_of_page(self) -> float:
        return len(self.page.encode()) / 1000.0
