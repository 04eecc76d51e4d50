"""Privacy reports: numbers as the questions give them, one page that loads nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import once

import pyengine as pe
from pyengine.cli import main

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from pyengine.mechanisms import in_words
from pyengine.report import (
    Attack,
    PrivacyReport,
    noise_curve,
    privacy_report,
    report_data,
    save_report,
    variants,
)
from pyengine.workbench.plots.series import asked
from pyengine.workbench.report.variants import resampled

RUN = pe.dp_sgd(1.0, 0.01, 1000)  # of fewer steps proofs and hulls take ten times as long
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \" ' & $x$"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements of a page, which must be closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.words.setdefault(self.open[-1], []).append(data.strip())


def hostile_report() -> PrivacyReport:
    attacks = [Attack(HOSTILE, 0.01, 0.9), Attack("fair", 0.0, 0.0)]
    return privacy_report(RUN, 1e-5, group_sizes=[2], attacks=attacks, title=HOSTILE)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> PrivacyReport:
    found = once(tmp_path_factory, "privacy_report", hostile_report)
    assert isinstance(found, PrivacyReport)
    return found


@pytest.fixture(scope="module")
def text(report: PrivacyReport) -> str:
    return report.html()


def test_page_is_whole_and_loads_nothing(text: str) -> None:
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("svg") == 4
    assert not {"img", "link", "iframe", "object", "embed", "base", "audio", "video"} & set(tags)
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [each["type"] for each in scripts] == ["application/json"]
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), attributes
    # nothing in the styles, either; names of namespaces are no addresses that are read
    assert not re.search(r"@import|url\((?!#)", text)
    addresses = set(re.findall(r"\bhttps?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    policies = [a["content"] for t, a in page.elements if a.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_identifiers_are_unique_and_found(text: str) -> None:
    elements = Page(text).elements
    names = [str(attributes["id"]) for _, attributes in elements if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in elements:
        for name in ("href", "aria-labelledby", "clip-path"):
            for word in re.findall(r"[^\s#()]+", (attributes.get(name) or "").replace("url", "")):
                assert word in names


def test_pictures_follow_the_page(text: str) -> None:
    drawn = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(drawn) == 4
    for picture in drawn:
        assert "var(--series-0)" in picture
        assert "var(--ink)" in picture
        assert "font-family" not in picture
        assert not re.search(r"#[0-9a-f]{6}\b(?!-)", re.sub(r'(href|id|d)="[^"]*"', "", picture))
        assert not re.search(r'<svg[^>]* (width|height)="', picture)
    styles = text[text.index("<style>") : text.index("</style>")]
    for name in set(re.findall(r"var\((--[\w-]+)\)", text)):
        assert styles.count(f"{name}:") == 3, name  # light, dark, print
    assert "@media (prefers-color-scheme: dark)" in styles
    assert "@media print" in styles


def test_text_of_users_is_escaped(text: str) -> None:
    assert "<script>document" not in text
    assert "<img" not in text
    page = Page(text)
    assert page.words["title"][0] == HOSTILE
    assert HOSTILE in page.words["h1"]
    assert HOSTILE in page.words["th"]
    assert any(HOSTILE in words for words in page.words["text"])  # in a legend
    assert "</" not in text[text.index('id="pyengine-report">') :].split("</script>")[0]
    assert report_data(text)["attacks"][0]["name"] == HOSTILE


def test_data_are_those_of_the_questions(text: str) -> None:
    data = report_data(text)
    assert data["schema"] == "pyengine-report/1"
    assert pe.from_json(json.dumps(data["mechanism"])) == RUN
    functions = {
        "epsilon": pe.epsilon,
        "gamma_bound": pe.gamma_bound,
        "trade_off": pe.trade_off,
        "delta": pe.delta,
    }
    assert [table["question"] for table in data["tables"]] == list(functions)
    curves = [table for name in ("trade_off", "gamma", "delta") for table in data["curves"][name]]
    assert len(curves) == 9
    for table in (*data["tables"], *curves):
        argument = np.array(table["argument"])
        found = pe.from_json(json.dumps(table["answer"]))
        truth = functions[table["question"]](RUN, argument, adjacency=table["adjacency"])
        np.testing.assert_allclose(found.value, truth, rtol=1e-9, atol=1e-300)
        assert (found.lower <= truth).all()
        assert (truth <= found.upper).all()
        assert len(table["certainty"]) == len(table["engine"]) == len(argument)
        assert set(table["certainty"]) <= {"proven", "estimate"}
    assert all(set(table["certainty"]) == {"proven"} for table in data["tables"])
    (noise,) = data["curves"]["noise"]
    for index in (0, 7, 12):
        run = pe.dp_sgd(data["noises"][index], 0.01, 1000)
        assert noise["answer"]["answer"]["value"][index] == pytest.approx(pe.epsilon(run, 1e-5))


def test_alternatives(report: PrivacyReport) -> None:
    found = {each.what.partition(":")[0]: each for each in report.alternatives}
    noise = pe.GaussianMechanism(1.0)
    fixed = noise.sampled_without_replacement(batch_size=1, dataset_size=100)
    expected: dict[str, tuple[pe.Mechanism, str]] = {
        "add": (RUN, "add"),
        "remove": (RUN, "remove"),
        "substitute": (RUN, "substitute"),
        "batches of fixed size, each drawn without replacement": (
            fixed.composed(1000),
            "add_remove",
        ),
        "shuffled once an epoch": (noise.composed(10), "add_remove"),
        "no sampling": (noise.composed(1000), "add_remove"),
        "a user of 2 records": (pe.dp_sgd(1.0, 0.01, 1000, group_size=2), "add_remove"),
    }
    assert set(found) == set(expected)
    for what, (run, adjacency) in expected.items():
        truths = [
            pe.epsilon(run, 1e-5, adjacency=adjacency, bounds=True).lower,
            pe.gamma_bound(run, 1e-3, adjacency=adjacency, bounds=True).lower,
            pe.gamma_bound(run, 1e-4, adjacency=adjacency, bounds=True).lower,
        ]
        for figure, truth in zip(found[what].figures, truths, strict=True):
            assert truth <= figure.bound <= truth * 1.002, what
            assert figure.certainty == "proven"
    for figure, other in zip(report.stated, (0, 1, 4), strict=True):
        assert figure.bound == report.statement.figures[other].bound


def test_attacks_beside_their_bounds(report: PrivacyReport, text: str) -> None:
    (_, bound), (_, zero) = report.attacks
    truth = pe.gamma_bound(RUN, 0.01, adjacency="add_remove")
    assert truth <= bound.bound <= truth * (1 + 1e-9)
    assert zero.bound == 0.0
    assert text.count("above the bound") == 1
    assert text.count("within the bound") == 1
    for rates in ((-0.1, 0.5), (0.1, 1.5), (0.1, float("nan"))):
        with pytest.raises(ValueError, match=r"(true|false)_positive_rate must"):
            Attack("wrong", *rates)


def test_estimates_are_called_so() -> None:
    few = pe.dp_sgd_allocated(1.0, 20, 2)  # whose proofs take longer
    quick = privacy_report(few, 1e-5, group_sizes=[], proven=False)
    page = quick.html()
    assert {word for table in quick.tables for word in table.certainty} == {"estimate"}
    assert "are not proven" in page
    assert "are estimates" in page
    assert "All are proven" not in page


def test_runs_without_noise_or_sampling() -> None:
    """What a run does not have is said, not drawn."""
    response = privacy_report(pe.RandomizedResponse(0.75).composed(3), 1e-5, adjacency="add")
    assert response.noises.size == 0
    assert [each.kind for each in response.alternatives] == ["adjacency"] * 3 + ["group_size"] * 2
    page = response.html()
    assert "no pair of laws is known" in page
    assert "There is no picture of noise" in page
    laplace = privacy_report(pe.LaplaceMechanism(2.0), 1e-5, adjacency="add", group_sizes=[3])
    truth = pe.epsilon(pe.LaplaceMechanism(2.0 / 3.0), 1e-5)
    assert laplace.alternatives[-1].figures[0].bound == pytest.approx(truth)
    nothing = privacy_report(pe.compose(), 1e-5, group_sizes=[]).html()
    assert "nothing is released" in nothing


def test_what_is_made_of_functions_has_words_only(report: PrivacyReport) -> None:
    stats = pytest.importorskip("scipy.stats")
    pair = pe.from_distributions(stats.norm(0, 1), stats.norm(1, 1))
    content = dataclasses.replace(report, mechanism=pe.compose(pair)).as_object()
    assert content["mechanism"] is None
    assert content["statement"]["mechanism"]


def test_noise_beyond_the_picture_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers far beyond take longest: the first that is not drawn is the last, if it is asked."""
    found: list[float] = []

    def recorded(question: str, *words: Any, **options: Any) -> Any:
        answer = asked(question, *words, **options)
        if question == "epsilon" and len(words[2]) == 1 and "tolerance" in options:
            found.append(float(answer.bounds.upper[0]))
        return answer

    monkeypatch.setattr(noise_curve, "asked", recorded)
    report = privacy_report(pe.dp_sgd(0.6, 0.05, 5000), 1e-5, group_sizes=[])
    (curve,) = report.curves["noise"]
    assert len(found) - len(curve.argument) <= 1
    assert sum(each > 100.0 for each in found) <= 1
    drawn = [each for each in found if each <= 100.0]
    assert sorted(drawn, reverse=True) == list(curve.bounds.upper)
    assert list(report.noises) == sorted(report.noises)
    assert max(curve.bounds.upper) <= 100.0
    assert max(curve.bounds.upper) > 50.0


@pytest.mark.parametrize(
    ("run", "most"),
    [(pe.LaplaceMechanism(2.0).composed(10), 13), (pe.dp_sgd(1.0, 0.01, 1000), 20)],
)
def test_noise_is_asked_where_its_curve_bends(run: pe.Mechanism, most: int) -> None:
    """Straight pieces between the points are the curve, to less than the width of its line."""
    noises, (curve,) = noise_curve.noise_curve(run, 1e-5, "add_remove", proven=False)
    assert 10 < noises.size <= most
    change = variants.with_noise(run)
    assert change is not None
    between = np.sqrt(noises[1:] * noises[:-1]) / variants.noise_of(run)
    value = np.array([pe.epsilon(change(each), 1e-5, adjacency="add_remove") for each in between])
    pieces = np.sqrt(curve.bounds.value[1:] * curve.bounds.value[:-1])
    assert np.max(np.abs(pieces / value - 1.0)) < 0.01


def test_mixed_noise_has_a_factor() -> None:
    phases = pe.compose(pe.dp_sgd("2", "1/100", 1000), pe.dp_sgd("1", "1/50", 1000))
    report = privacy_report(phases, 1e-5, group_sizes=[])
    assert report.noise is None
    assert "as a multiple of that of this run" in report.html()
    (curve,) = report.curves["noise"]
    here = int(np.argmin(abs(report.noises - 1.0)))
    assert curve.bounds.value[here] == pytest.approx(pe.epsilon(phases, 1e-5))
    steps = pe.from_json(json.dumps(report.as_object()["mechanism"]))
    assert steps == phases
    shuffled = next(each for each in report.alternatives if each.what.startswith("shuffled"))
    assert shuffled.mechanism == (
        "DP-SGD on shuffled batches, noise multiplier 1, 20 epochs",
        "DP-SGD on shuffled batches, noise multiplier 2, 10 epochs",
    )


def test_less_than_an_epoch_of_mixed_noise() -> None:
    """A step of each noise: no batch of an epoch holds a record twice."""
    phases = pe.compose(pe.dp_sgd("2", "1/100", 10), pe.dp_sgd("1", "1/50", 10))
    (shuffled,) = [run for what, run in resampled(phases).items() if what.startswith("shuffled")]
    assert in_words(shuffled) == [
        f"DP-SGD on shuffled batches, noise multiplier {noise}, 1 epoch" for noise in (1, 2)
    ]


@pytest.mark.parametrize(
    "run",
    [
        pe.GaussianMechanism(1.0).sampled_without_replacement(batch_size=10, dataset_size=1000),
        pe.GaussianMechanism(1.0).poisson_sampled(0.01),
        pe.GaussianMechanism(1.0).poisson_sampled("10/1000"),
    ],
)
def test_a_run_is_no_alternative_of_itself(run: pe.Mechanism) -> None:
    found = resampled(run.composed(10))
    assert len(found) == 3
    assert len({tuple(in_words(each)) for each in found.values()}) == 3
    own = pe.epsilon(run.composed(10), 1e-5)
    assert min(abs(pe.epsilon(each, 1e-5) - own) for each in found.values()) > 0.01


def test_rates_that_are_no_unit_fractions() -> None:
    """At rate 0.3 an epoch has at least three batches: ten steps are at most four epochs."""
    report = privacy_report(pe.dp_sgd(4.0, 0.3, 10), 1e-5, group_sizes=[])
    shuffled = next(each for each in report.alternatives if each.what.startswith("shuffled"))
    truth = pe.epsilon(pe.GaussianMechanism(4.0).composed(4), 1e-5)
    assert shuffled.figures[0].bound == pytest.approx(truth, rel=1e-9)
    fixed = next(each for each in report.alternatives if each.what.startswith("batches"))
    assert fixed.mechanism == (
        "DP-SGD, noise multiplier 4, 10 steps of 3 of 10 records, without replacement",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"delta": 0.0}, "delta must be positive, got 0"),
        ({"delta": 1.0}, r"delta must lie in \[0, 1\)"),
        ({"adjacency": "both"}, "adjacency must be one of"),
        ({"group_sizes": [1]}, "group_sizes must be"),
        ({"group_sizes": [10**308]}, "group_size must be at most 1,000 where samples are drawn"),
        ({"title": " "}, "title must not be blank"),
        ({"attacks": [(0.1, 0.2)]}, "attacks must be of Attack"),
    ],
)
def test_wrong_arguments(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        privacy_report(RUN, **{"delta": 1e-5, **words})


def test_same_bytes_each_time(report: PrivacyReport, text: str) -> None:
    assert report.html() == text


def test_files(
    report: PrivacyReport, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivacyReport, "html", lambda _: text)
    save_report(report, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == text
    assert os.listdir(tmp_path) == ["a.html"]
    with pytest.raises(ValueError, match="path must be a string or a path"):
        save_report(report, None)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="No such file"):
        save_report(report, tmp_path / "nowhere" / "a.html")
    with pytest.raises(ValueError, match="it holds no data"):
        report_data("<html></html>")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text('[[phase]]\nnoise = 1\np = "1/100"\nsteps = 1000\n')
    page = tmp_path / "report.html"
    words = ["--delta", "1e-5", "--groups", "--attack", "mine", "1/100", "0.02"]
    assert main(["report", str(tmp_path / "run.toml"), *words, "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    data = report_data(page.read_text(encoding="utf-8"))
    assert pe.from_json(json.dumps(data["mechanism"])) == pe.dp_sgd(1, Fraction(1, 100), 1000)
    assert {word for table in data["tables"] for word in table["certainty"]} == {"proven"}
    assert (data["delta"], data["attacks"][0]["true_positive_rate"]) == (1e-5, 0.02)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.txt"], "--output must end in .html, .htm; got 'x.txt'"),
        (["-o", "nowhere/x.html"], "nowhere/x.html: No such file or directory"),
        (["-o", "folder.html"], "folder.html: Is a directory"),
        (["-o", "x.html", "--attack", "a", "2", "0"], "--attack must lie in [0, 1], got 2"),
        (["-o", "x.html", "--delta", "1e-6:1e-5:2"], "--delta must be one number"),
        (["-o", "x.html", "--groups", "1"], "--groups must be"),
        (["-o", "x.html", "--file", "b.toml"], "by flags such as --noise or by --file"),
        (["a.toml", "-o", "x.html", "--file", "b.toml"], "give the mechanism once, by "),
    ],
)
def test_commands_that_cannot_be(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    assert main(["report", "--noise", "1", "--delta", "1e-5", *words]) == 2
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["folder.html"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    words = ["--noise", "1", "--delta", "1e-5", "--groups", "-o", str(tmp_path / "x.html")]
    assert main(["report", *words]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_full_disk_leaves_the_old_page(
    report: PrivacyReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivacyReport, "html", lambda _: "new")
    old = tmp_path / "a.html"
    old.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_report(report, old)
    assert old.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.html"]


def test_without_its_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["report", "--noise", "1", "--delta", "1e-5", "-o", "x.html"]) == 2
    assert "a report needs jinja2: pip install 'pyengine-dp[report]'" in capsys.readouterr().err


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_in_a_browser(report: PrivacyReport, tmp_path: Path) -> None:
    """No script of a name runs, all four pictures have a size, and it prints."""
    page = tmp_path / "report.html"
    save_report(report, page)
    common = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]

    def browse(*words: str) -> str:
        run = subprocess.run(
            [*common, *words, page.as_uri()], capture_output=True, text=True, timeout=120
        )
        return run.stdout

    dom = browse("--dump-dom", "--window-size=390,900")
    title = re.search(r"<title>(.*?)</title>", dom, re.S)
    assert title is not None
    assert title[1] != "owned"
    assert dom.count("<svg") == 4
    assert "<img" not in dom
    from PIL import Image

    inks = {}
    for name, words in {"light": (), "dark": ("--force-dark-mode",)}.items():
        browse(*words, "--window-size=1200,1500", f"--screenshot={tmp_path / name}.png")
        with Image.open(tmp_path / f"{name}.png") as image:
            inks[name] = np.asarray(image.convert("L"), dtype=float)
    assert inks["light"].mean() > 200.0
    assert inks["dark"].mean() < 60.0
    for pixels in inks.values():
        assert pixels.max() - pixels.min() > 180.0
    browse("--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'report.pdf'}")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_levels_of_tables_are_written_as_they_are_meant() -> None:
    """A tenth of 1e-5 was 1.0000000000000002e-6, in two columns of a telephone."""
    for delta, below in ((1e-5, [1e-6, 1e-7]), (3e-7, [3e-8, 3e-9]), (0.05, [0.005, 0.0005])):
        table = pe.report.privacy_report(RUN, delta, group_sizes=[], proven=False).tables[0]
        assert table.argument.tolist() == [delta, *below]
