"""Numbers of released accountants beside ours: ``pip install '.[peers]'``, then run this.

The setting is the run of 10,000 steps of Lebeda et al. 2024, Table 1; the README quotes the output.
"""

from importlib.metadata import version

from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from riskcal.calibration.dpsgd import get_beta_for_dpsgd

import pyengine as pe

NOISE, PROBABILITY, STEPS = 0.8, 0.001, 10_000


def main():
    run = pe.dp_sgd(NOISE, PROBABILITY, STEPS)
    for kappa in (1e-1, 1e-3, 1e-5):
        peer = 1 - get_beta_for_dpsgd(NOISE, PROBABILITY, STEPS, alpha=kappa)
        lower, _, upper = pe.gamma_bound(run, kappa, adjacency="add_remove", bounds=True)
        report(f"gamma({kappa:g})", lower, upper, "riskcal", peer)
    loss = from_gaussian_mechanism(
        NOISE, sampling_prob=PROBABILITY, value_discretization_interval=1e-4
    ).self_compose(STEPS)
    for epsilon in (1, 4, 8):
        lower, _, upper = pe.delta(run, epsilon, bounds=True)
        peer = loss.get_delta_for_epsilon(epsilon)
        report(f"delta({epsilon})", lower, upper, "dp-accounting", peer)


def report(question, lower, upper, name, peer):
    ours = f"{lower:.12e} ... {upper:.12e}"
    print(f"{question:12}  pyengine {ours}  {name} {version(name)} {peer:.4e}")


if __name__ == "__main__":
    main()
