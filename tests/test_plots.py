"""Pictures: what they show, and that they are not empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import api
from pyengine.cli import main

pytest.importorskip("matplotlib")
from matplotlib import rc_context

from pyengine.plots import (
    delta_figure,
    epsilon_figure,
    gamma_figure,
    noise_figure,
    save,
    series,
    strategy_figure,
    trade_off_figure,
)
from pyengine.workbench.plots.curves import DIRECTIONS
from pyengine.workbench.plots.ticks import number_text

RUN = pe.dp_sgd(1.0, 0.01, 1000)


def ink(path: Path) -> float:
    """Share of the pixels of a picture that are not white."""
    from PIL import Image

    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    return float((pixels.min(axis=2) < 250).mean())


def words(figure: Any) -> list[str]:
    """All texts of a picture."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def ticks(axis: Any) -> list[str]:
    """Labels of an axis that lie within its limits."""
    axis.get_figure().canvas.draw()
    low, high = sorted(axis.get_view_interval())
    inside = 1.0 + 1e-9
    return [
        axis.get_major_formatter()(place, None)
        for place in axis.get_majorticklocs()
        if low / inside <= place <= high * inside
    ]


def test_trade_off_figure() -> None:
    figure = trade_off_figure(RUN, title="a run")
    left, right = figure.axes
    for axes, function in ((left, pe.trade_off), (right, pe.gamma_bound)):
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert len(lines) == 4
        for adjacency in ("add", "remove"):
            (label,) = (name for name in lines if str(name).startswith(f"{adjacency}:"))
            x, y = (np.asarray(data) for data in lines[label].get_data())
            np.testing.assert_allclose(y, function(RUN, x, adjacency=adjacency), rtol=1e-12)
    assert {"a run", *DIRECTIONS.values()} <= set(words(figure))


@pytest.mark.parametrize("draw", [trade_off_figure, gamma_figure, delta_figure])
def test_several_mechanisms(draw: Any) -> None:
    runs = {"one": RUN, "_two$": pe.GaussianMechanism(2.0)}
    figure = draw(runs, adjacency="remove", title="_$x$_")
    assert {"one", "_two$", "_$x$_\nadjacency remove"} <= set(words(figure))
    function = {
        delta_figure: pe.delta,
        gamma_figure: pe.gamma_bound,
        trade_off_figure: pe.trade_off,
    }
    for label, run in runs.items():
        (drawn,) = (each for each in figure.axes[0].get_lines() if each.get_label() == label)
        x, y = (np.asarray(data) for data in drawn.get_data())
        np.testing.assert_allclose(y, function[draw](run, x, adjacency="remove"), atol=1e-12)
    with pytest.raises(ValueError, match="mechanisms must not be empty"):
        draw({})


@pytest.mark.parametrize("adjacency", ["add", "substitute"])
@pytest.mark.parametrize("draw", [trade_off_figure, gamma_figure, delta_figure])
def test_adjacency_is_named(draw: Any, adjacency: str) -> None:
    run = pe.GaussianMechanism(2.0)
    assert f"adjacency {adjacency}" in words(draw(run, adjacency=adjacency))
    assert "adjacency add_remove" in words(draw({"a": run}, adjacency="add_remove"))


def test_ticks_are_read_at_a_glance() -> None:
    left, right = gamma_figure(pe.dp_sgd(0.8, 0.001, 10_000)).axes
    assert ticks(right.yaxis) == ["1", "2", "3", "4"] or ticks(right.yaxis) == ["1", "2", "4"]
    assert ticks(left.xaxis) == ["10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"]
    (axes,) = noise_figure({"a": lambda s: pe.dp_sgd(s, 0.1, 100)}, 1e-6).axes
    assert ticks(axes.xaxis) == ["0.1", "0.2", "0.5", "1", "2", "5", "10"]
    assert len(ticks(axes.yaxis)) >= 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.05, "0.05"), (2000.0, "2000"), (1e-6, "10⁻⁶"), (2e-6, "2·10⁻⁶"), (1e5, "10⁵")],
)
def test_numbers_of_ticks(value: float, text: str) -> None:
    assert number_text(value) == text


def test_gamma_figure_names_its_runs() -> None:
    figure = gamma_figure({"one": RUN, "$two": pe.GaussianMechanism(2.0)}, lowest=1e-5)
    left, right = figure.axes
    assert [line.get_label() for line in left.get_lines()][:2] == ["one", "$two"]
    kappa, ratio = (np.asarray(data) for data in right.get_lines()[0].get_data())
    np.testing.assert_allclose(ratio * kappa, pe.gamma_bound(RUN, kappa), rtol=1e-12)


@pytest.mark.parametrize("mechanism", [RUN, pe.compose(), pe.GaussianMechanism(2.0)])
def test_delta_figure(mechanism: pe.Mechanism) -> None:
    (axes,) = delta_figure(mechanism, smallest=1e-8).axes
    assert axes.get_ylim() == (1e-8, 1.0)
    assert axes.get_xlim()[1] == pytest.approx(pe.epsilon(mechanism, 1e-8) or 1.0)


def test_strategy_figure() -> None:
    menu = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06))]
    (axes,) = strategy_figure(pe.adaptive(menu, 5).strategy(0.2), title="a run").axes
    (image,) = axes.get_images()
    assert set(np.unique(image.get_array())) == {-1, 0, 1}
    assert axes.get_xlim() == (5.5, 0.5)
    limited = pe.adaptive(menu, 5, most={0: 2}).strategy(0.2)
    with pytest.raises(ValueError, match="without budget and limits"):
        strategy_figure(limited)
    many = pe.adaptive(menu * 4, 1).strategy(0.2)
    with pytest.raises(ValueError, match="at most 7 choices, got 8"):
        strategy_figure(many)


def test_epsilon_over_epochs() -> None:
    """The curve ends at ε of the whole run, and has a point where a phase ends."""
    phases = [pe.dp_sgd(2.0, 0.01, 150), pe.dp_sgd(1.0, 0.04, 50)]
    runs = {"two": phases, "one": RUN}
    (axes,) = epsilon_figure(runs, 1e-5).axes
    (epochs, epsilon), (others, _) = (map(np.asarray, x.get_data()) for x in axes.get_lines())
    assert epochs[-1] == pytest.approx(1.5 + 2.0)
    assert epsilon[-1] == pytest.approx(pe.epsilon(pe.compose(*phases), 1e-5))
    (at,) = np.flatnonzero(np.isclose(epochs, 1.5))
    assert epsilon[at] == pytest.approx(pe.epsilon(phases[0], 1e-5))
    assert others[-1] == pytest.approx(10.0)
    assert len(epsilon_figure(pe.dp_sgd(1.0, 0.5, 3), 0.1).axes[0].get_lines()[0].get_xdata()) == 3
    for wrong, delta, message in (
        (phases[0] + phases[1], 1e-5, "phases of equal steps in their order, got one of 2 kinds"),
        (pe.dp_sgd(1.0, 0.5, 0), 1e-5, "a step at least, got none in 'this run'"),
        (RUN, 1.0, r"delta must lie in \(0, 1\), got 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            epsilon_figure(wrong, delta)


def test_noise_figure() -> None:
    families = {f"p = {p}": (lambda s, p=p: pe.dp_sgd(s, p, 100)) for p in (0.1, 1.0)}
    (axes,) = noise_figure(families, 1e-5, epsilons=(0.5, 2.0)).axes
    assert [line.get_label() for line in axes.get_lines()] == ["p = 0.1", "p = 1.0"]
    epsilon, noise = (np.asarray(data) for data in axes.get_lines()[1].get_data())
    assert (epsilon[0], epsilon[-1]) == (0.5, pytest.approx(2.0))
    for at in (0, 10, 20):
        assert pe.delta(pe.dp_sgd(noise[at], 1.0, 100), epsilon[at]) == pytest.approx(1e-5, 2e-3)


@pytest.mark.parametrize("picture", ["tradeoff", "gamma", "delta", "epsilon", "noise"])
def test_command(picture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"{picture}.png"
    run = ["--noise", "1", "--p", "0.01", "--steps", "1000"]
    run = ["--steps", "100"] if picture == "noise" else run
    assert main(["plot", picture, *run, "-o", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert 0.02 < ink(file) < 0.5


def test_command_with_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "several.svg"
    (tmp_path / "b.toml").write_text("[[phase]]\nnoise = 1\nsteps = 3\n")
    runs = ["--run", "one", "noise=2,p=0.1,steps=3; noise=1,steps=1"]
    command = ["plot", "delta", *runs, "--run", "two", str(tmp_path / "b.toml"), "-o", str(file)]
    assert main([*command, "--adjacency", "add", "--title", "both"]) == 0
    capsys.readouterr()
    with rc_context({"svg.fonttype": "none"}):
        assert main([*command, "--adjacency", "add", "--title", "both"]) == 0
    text = file.read_text(encoding="utf-8")
    for word in ("one", "two", "both", "adjacency add"):
        assert f">{word}<" in text
    noise = ["plot", "noise", "--run", "a", "steps=10", "--run", "b", "steps=20", "-o", str(file)]
    assert main([*noise, "--delta", "1e-5"]) == 0
    capsys.readouterr()
    assert main(["plot", "noise", "--noise", "1", "-o", str(file)]) == 2
    err = capsys.readouterr().err
    assert err == (
        "pyengine: error: noise is given in every phase; omit it in the phase where it is to be "
        "found\n"
    )
    for wrong, message in (
        (["--noise", "1"], "give mechanisms by --run, or one by flags"),
        (["--run", "one", "noise=1"], "two runs are named 'one'"),
        (["--run", "three", "noise"], "expected KEY=VALUE"),
        (["--run", "three", "noise=1,p=2,steps=1"], "must lie in [0, 1]"),
    ):
        assert main([*command, *wrong]) == 2
        assert message in capsys.readouterr().err


def test_svg(tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    save(delta_figure(RUN), file)
    text = file.read_text(encoding="utf-8")
    assert text.count("<path") > 20
    assert "</svg>" in text


def test_unknown_ending(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.png, \.svg, \.pdf, got"):
        save(delta_figure(RUN), tmp_path / "picture.gif")
    run = ["plot", "gamma", "--noise", "1", "-o"]
    assert main([*run, "x.gif"]) == 2
    assert "--output must end in .png, .svg, .pdf" in capsys.readouterr().err
    assert main([*run, str(tmp_path / "missing" / "x.png")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["plot", "gamma", "--noise", "1", "-o", "x.png"]) == 2
    assert "pip install 'pyengine-dp[plots]'" in capsys.readouterr().err


def test_names_may_be_strings(tmp_path: Path) -> None:
    figure = gamma_figure({"γ": pe.GaussianMechanism(1.0)})
    for name in ("three.png", "four.SVG"):
        save(figure, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000
    for wrong in (None, 3):
        with pytest.raises(ValueError, match="path must be a string or a path, got"):
            save(figure, wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_picture_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    figure = gamma_figure({"γ": pe.GaussianMechanism(1.0)})
    (tmp_path / "old.png").write_text("old")
    (tmp_path / "in the way").mkdir()
    (tmp_path / "in the way").rename(tmp_path / "new.png")
    with pytest.raises(IsADirectoryError):
        save(figure, tmp_path / "new.png")
    with pytest.raises(OSError, match="No such file"):
        save(figure, tmp_path / "nowhere" / "old.png")
    assert (tmp_path / "old.png").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.png", "old.png"]


def test_arguments_without_an_answer_leave_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(question: Any, mechanism: Any, at: np.ndarray, **words: Any) -> Any:
        if (at > 3.0).any():
            raise pe.AccuracyError(f"nothing is known at {at.max()}")
        return api.answers(question, mechanism, at, **words)

    run, at = pe.dp_sgd(1.0, 0.01, 100), [0.5, 4.0, 1.0, 5.0]
    monkeypatch.setattr(series, "answers", answers)
    found = series.asked("delta", "run", run, at, adjacency="add_remove")
    assert found.argument.tolist() == [0.5, 1.0]
    assert found.refused == (4.0, 5.0)
    assert found.bounds.value.tolist() == [pe.delta(run, 0.5), pe.delta(run, 1.0)]
    assert len(found.certainty) == len(found.engine) == 2
    for refused in ([4.0], [4.0, 5.0]):
        with pytest.raises(pe.AccuracyError, match=rf"nothing is known at {refused[-1]}"):
            series.asked("delta", "run", run, refused, adjacency="add_remove")
