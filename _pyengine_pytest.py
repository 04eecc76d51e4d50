"""The plugin for pytest; it stands beside the package so that it can be loaded without it."""

import pytest


def pytest_addoption(parser):
    """Add the options."""
    group = parser.getgroup("pyengine", "accountants of differential privacy beside the truth")
    group.addoption(
        "--pyengine-conformance",
        action="append",
        default=[],
        metavar="MODULE:ADAPTER",
        help="test that this accountant never promises more privacy than there is; an adapter, a "
        "class of the shape of Opacus' or dp_accounting's accountants, or a name that `pyengine "
        "conformance` knows; may be given again",
    )
    group.addoption(
        "--pyengine-setting",
        action="append",
        default=[],
        metavar="NAME",
        help="of this run only, such as a or group; may be given again",
    )
    group.addoption(
        "--pyengine-refusal",
        action="append",
        default=[],
        metavar="EXCEPTION",
        help="what the accountant raises where it has no answer, such as ValueError or "
        "module.Error: such questions are skipped; may be given again",
    )


@pytest.hookimpl(tryfirst=True)  # before plugins that choose among the tests
def pytest_collection_modifyitems(session, config, items):
    """Add a test for each question."""
    if config.getoption("--pyengine-conformance"):
        from pyengine.accounting.conformance.items import items as asked

        items.extend(asked(session))
