"""An accountant for Opacus; importing this module registers it as ``accountant="pyengine"``."""

from __future__ import annotations

from pyengine._support.extras import needed
from pyengine.accounting.interop.history_accountant import HistoryAccountant

with needed("pyengine.interop.opacus", "opacus"):
    from opacus.accountants import IAccountant, register_accountant

__all__ = ["PyengineAccountant"]


class PyengineAccountant(HistoryAccountant, IAccountant):  # type: ignore[misc]
    """Accountant of Opacus with proven bounds: ``PrivacyEngine(accountant="pyengine")``.

    See `pyengine.interop.HistoryAccountant`: ``get_epsilon(delta)`` is a proven upper bound, and
    there are ``get_delta``, ``get_beta``, ``get_gamma`` and ``get_advantage``.

    Examples
    --------
    >>> from opacus import PrivacyEngine
    >>> import pyengine as pe
    >>> import pyengine.accounting.interop.opacus
    >>> engine = PrivacyEngine(accountant="pyengine")
    >>> for _ in range(1000):
    ...     engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> print(f"{engine.get_epsilon(delta=1e-5):.3f} {pe.gamma_bound(engine, kappa=1e-3):.4f}")
    1.828 0.0041
    """


# with force, so that the module can be reloaded
register_accountant("pyengine", PyengineAccountant, force=True)
