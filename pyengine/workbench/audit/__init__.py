"""Audits: lower bounds on privacy loss from attacks, compared with the guarantees of the theory.

All functions take NumPy arrays of gradients or scores, whichever framework produced them.
"""

from pyengine.workbench.audit.auroc import Auroc, auroc
from pyengine.workbench.audit.bands import clopper_pearson
from pyengine.workbench.audit.canary import dirac_canary, magnitude_scores, offline_scores
from pyengine.workbench.audit.counts import CountAudit, count_audit
from pyengine.workbench.audit.glir import glir_log_p_values
from pyengine.workbench.audit.gradients import GradientDistribution
from pyengine.workbench.audit.lower_bounds import (
    epsilon_lower_bound,
    gamma_lower_bound,
    mu_lower_bound,
)
from pyengine.workbench.audit.one_run import OneRun, one_run, one_run_p_value
from pyengine.workbench.audit.prior_aware import (
    inner_product_scores,
    log_likelihood_scores,
    orthogonal_success,
)
from pyengine.workbench.audit.report import Finding, picture, report
from pyengine.workbench.audit.sequential import SequentialAudit
from pyengine.workbench.audit.trade_off import EmpiricalTradeOff, Gap, empirical_trade_off

__all__ = [
    "Auroc",
    "CountAudit",
    "EmpiricalTradeOff",
    "Finding",
    "Gap",
    "GradientDistribution",
    "OneRun",
    "SequentialAudit",
    "auroc",
    "clopper_pearson",
    "count_audit",
    "dirac_canary",
    "empirical_trade_off",
    "epsilon_lower_bound",
    "gamma_lower_bound",
    "glir_log_p_values",
    "inner_product_scores",
    "log_likelihood_scores",
    "magnitude_scores",
    "mu_lower_bound",
    "offline_scores",
    "one_run",
    "one_run_p_value",
    "orthogonal_success",
    "picture",
    "report",
]
