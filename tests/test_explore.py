"""The page with sliders: its settings, its answers, its server, and the page in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import pyengine as pe
from pyengine.cli import main
from pyengine.workbench.explore.answerer import Answerer, BusyError, SupersededError
from pyengine.workbench.explore.computing import answer
from pyengine.workbench.explore.link import link
from pyengine.workbench.explore.page import OF_A_RUN, SHARED, page
from pyengine.workbench.explore.server import HEADERS
from pyengine.workbench.explore.settings import CHOICES, RANGES, SettingError, Settings
from pyengine.workbench.runs.files import parse_runs

GIVEN: dict[str, Any] = {
    **{control.name: control.value for control in (*OF_A_RUN, *SHARED)},
    "size": "batch",
    "sampling": "poisson",
    "adjacency": "add_remove",
    "threat_model": "dp",
}


def asked(**changed: Any) -> dict[str, Any]:
    return answer(json.dumps({**GIVEN, **changed}))


# ---- settings ------------------------------------------------------------------------------------


def test_the_page_has_every_setting_within_its_range() -> None:
    text = page("1.2.3")
    for control in (*OF_A_RUN, *SHARED):
        low, high, _ = RANGES[control.name]
        assert low <= control.low <= control.value <= control.high <= high
        assert f'data-name="{control.name}"' in text
    assert {control.name for control in (*OF_A_RUN, *SHARED)} == set(RANGES)
    for name, words in CHOICES.items():
        found = re.search(rf'<select data-name="{name}">(.*?)</select>', text)
        assert found is not None
        assert set(re.findall(r'value="(\w+)"', found[1])) == set(words)
    # what the policy of the page forbids
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|https?:|javascript:", text)


@pytest.mark.parametrize(
    ("changed", "setting", "message"),
    [
        ({"noise_multiplier": 0}, "noise_multiplier", r"number in \[0.01, 10000\], got 0$"),
        ({"noise_multiplier": None}, "noise_multiplier", "got nothing$"),
        ({"noise_multiplier": "1"}, "noise_multiplier", "got '1'$"),
        ({"noise_multiplier": True}, "noise_multiplier", "got True$"),
        ({"noise_multiplier": 1e400}, "noise_multiplier", "got inf$"),
        ({"delta": 1}, "delta", r"delta must be a number in \[1e-300, 0.999\], got 1$"),
        ({"batch_size": 2.5}, "batch_size", r"batch size must be a whole number .*, got 2.5$"),
        ({"batch_size": 70_000}, "batch_size", "at most the number of records; got 70,000$"),
        ({"dataset_size": 10**9, "epochs": 10**6}, "epochs", "more than 100,000,000 steps$"),
        ({"sampling": "allocation", "epochs": 1.5}, "epochs", "whole epochs; got 1.5$"),
        ({"sampling": "poison"}, "sampling", "got 'poison'; did you mean 'poisson'\\?$"),
        ({"sampling": ["x" * 99]}, "sampling", "got .{41}$"),
        ({"sampling": "allocation", "size": "rate"}, "sampling", "need a batch size"),
        ({"nonsense": 1}, "nonsense", "there is no setting 'nonsense'$"),
        ({"proven": 1}, "proven", "true or false, got 1$"),
    ],
)
def test_wrong_settings(changed: dict[str, Any], setting: str, message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        Settings.read(json.loads(json.dumps({**GIVEN, **changed}))).mechanism()
    assert caught.value.name == setting


def test_settings_of_another_kind() -> None:
    for text in ("[]", "1", "null", "nonsense", "[" * 100_000):
        assert set(answer(text)) == {"error", "setting"}


# ---- answers -------------------------------------------------------------------------------------


def test_answers_are_those_of_the_package() -> None:
    run = pe.dp_sgd(1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson")
    for proven in (False, True):
        found = asked(proven=proven)
        bounds = [figure["bound"] for figure in found["figures"]][:5]
        truth = (
            pe.epsilon(run, 1e-5),
            pe.gamma_bound(run, 1e-3),
            pe.delta(run, 0.0),
            pe.gamma_bound(run, 1e-4),
            1.0 - pe.bayes_risk(run, 0.5),
        )
        assert bounds == pytest.approx(truth, rel=1e-9)
        words = {figure["certainty"] for figure in found["figures"]}
        assert words == {"proven"}
        assert found["mechanism"] == [
            "DP-SGD, noise multiplier 1, 2,344 steps (10 epochs) of about 256 of 60,000 records"
        ]
    curves = found["curves"]
    assert curves["trade_off"]["y"] == pytest.approx(
        pe.trade_off(run, curves["trade_off"]["x"]), rel=1e-9
    )
    gamma = pe.gamma_bound(run, curves["gamma"]["x"], adjacency="add_remove")
    assert curves["gamma"]["y"] == pytest.approx(gamma)
    assert curves["delta"]["y"] == pytest.approx(pe.delta(run, curves["delta"]["x"]))


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        ({"size": "rate"}, pe.dp_sgd(1.0, 0.01, 1000)),
        ({"size": "rate", "sampling": "none"}, pe.GaussianMechanism(1.0).composed(1000)),
        ({"sampling": "none", "epochs": 1}, pe.GaussianMechanism(1.0).composed(235)),
        ({"sampling": "allocation"}, pe.dp_sgd_allocated(1.0, 234, 10)),
        ({"sampling": "shuffle"}, pe.GaussianMechanism(1.0).composed(10)),
        (
            {"sampling": "without_replacement"},
            pe.dp_sgd(
                1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="without_replacement"
            ),
        ),
    ],
)
def test_batches(changed: dict[str, Any], run: pe.Mechanism) -> None:
    assert Settings.read({**GIVEN, **changed}).mechanism() == run
    found = asked(**changed)
    assert found["figures"][0]["bound"] == pytest.approx(pe.epsilon(run, 1e-5), rel=1e-9)


def settings_of(run: str) -> dict[str, Any]:
    """What the page asks for one run of its link."""
    words = dict(pair.split("=") for pair in unquote(run).split(","))
    return {**GIVEN, **{k: v if k in CHOICES else float(v) for k, v in words.items()}}


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("noise = 2\np = 0.25\nsteps = 8", pe.dp_sgd(2.0, 0.25, 8)),
        ("noise = 2\np = 0.25\nepochs = 8", pe.dp_sgd(2.0, 0.25, 32)),
        ('noise = 2\np = "256/60000"\nsteps = 8', pe.dp_sgd(2.0, 256 / 60000, 8)),
        ("noise = 2\nsteps = 8", pe.GaussianMechanism(2.0).composed(8)),
        ("noise = 2\nsteps_per_epoch = 7\nepochs = 3", pe.dp_sgd_allocated(2.0, 7, 3)),
        *(
            (
                f'noise = 2\nbatch_size = 16\ndataset_size = 60000\nsampling = "{how}"\n{often}',
                pe.dp_sgd(2.0, batch_size=16, dataset_size=60_000, steps=7500, sampling=how),
            )
            for how in ("poisson", "without_replacement", "shuffle")
            for often in ("epochs = 2", "steps = 7500")
        ),
    ],
)
def test_a_run_file_is_a_link(text: str, run: pe.Mechanism) -> None:
    """The page begins with the very run."""
    link_text = link(parse_runs(f"{text}\n[statement]\ndelta = 1e-7\nfpr = [0.01]", "run.toml"))
    first, *others = link_text.removeprefix("#run=").split("&")
    assert Settings.read(settings_of(first)).mechanism() == run
    assert others == ["delta=1e-7", "false_positive_rate=0.01"]


def test_links_of_grids_and_of_what_has_no_sliders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = link(parse_runs('noise = "1:2:9"\nsteps = 3', "run.toml"))
    assert found.count("run=") == 4
    path = tmp_path / "run.toml"
    for text in ('mechanism = "laplace"\nnoise = 1', "[[phase]]\nnoise = 1\n[[phase]]\nnoise = 2"):
        path.write_text(text)
        assert main(["explore", str(path)]) == 2
        assert "the page has sliders for Gaussian steps of one kind" in capsys.readouterr().err


def test_relaxed_threat_model() -> None:
    changed = {"sampling": "none", "epochs": 1, "threat_model": "relaxed", "dimension": 100}
    found = asked(**changed, proven=True)
    run = pe.GaussianMechanism(1.0).composed(235)
    relaxed = pe.threat_models.Relaxed(100)
    power = 1.0 - pe.trade_off(run, 1e-3, threat_model=relaxed)
    assert found["figures"][-1]["what"].startswith("relaxed threat model: ")
    assert found["figures"][-1]["bound"] == pytest.approx(power, rel=1e-9)
    assert found["figures"][0]["bound"] == pytest.approx(pe.epsilon(run, 1e-5))  # of dp, beside
    assert "adjacency must not be substitute" in asked(**changed, adjacency="substitute")["error"]


def test_what_no_engine_answers_is_said() -> None:
    found = asked(sampling="allocation", threat_model="relaxed")
    assert found["setting"] == ""
    assert "covers Gaussian and Laplace mechanisms" in found["error"]


# ---- answers in turn -----------------------------------------------------------------------------

# Sleeps as long as a question says, and answers with its number.
STUB = """\
import sys, time
for line in sys.stdin:
    number, seconds = line.split()
    if seconds == "die":
        sys.exit(1)
    time.sleep(float(seconds))
    print('{"number": %s}' % number, flush=True)
"""


def work(*questions: tuple[str, str], seconds: float = 20.0, pause: float = 0.0) -> list[Any]:
    """Replies to questions of slots, or exceptions, all asked at once but for a pause.

    In a thread of their own, as a browser that a test has opened keeps a loop in this one.
    """

    async def ask() -> list[Any]:
        answerer = Answerer(seconds, (sys.executable, "-c", STUB))
        async with answerer.at_work():
            await answerer.ask("first", "0 0")  # started
            tasks = []
            for slot, question in questions:
                tasks.append(asyncio.ensure_future(answerer.ask(slot, question)))
                await asyncio.sleep(pause)
            return await asyncio.gather(*tasks, return_exceptions=True)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(ask())).result()


def test_questions_in_turn() -> None:
    assert work(("a", "1 0.1"), ("b", "2 0"), ("c", "3 0")) == [{"number": i} for i in (1, 2, 3)]


def test_a_newer_question_takes_the_place_of_the_one_before() -> None:
    waiting = work(("a", "1 0.3"), ("b", "2 0"), ("b", "3 0"), ("b", "4 0"), pause=0.02)
    assert waiting[0] == {"number": 1}
    assert [type(found) for found in waiting[1:3]] == [SupersededError] * 2
    assert waiting[3] == {"number": 4}
    began = time.monotonic()
    running = work(("a", "1 60"), ("a", "2 0"), pause=0.1)
    assert isinstance(running[0], SupersededError)
    assert running[1] == {"number": 2}
    assert time.monotonic() - began < 30.0


def test_no_answer_takes_longer_than_the_limit() -> None:
    late, after = work(("a", "1 60"), ("b", "2 0"), seconds=2.0)
    assert late == {"error": "no answer within 2 s, the limit of this page", "setting": ""}
    assert after == {"number": 2}


def test_a_process_that_ends_is_replaced() -> None:
    gone, after = work(("a", "1 die"), ("b", "2 0"))
    assert "ended before its answer" in gone["error"]
    assert after == {"number": 2}


def test_no_more_than_some_questions_wait() -> None:
    found = work(("a", "1 0.5"), *((f"slot {i}", f"{i} 0") for i in range(20)))
    assert any(isinstance(each, BusyError) for each in found)
    assert {"number": 0} in found


# ---- the server ----------------------------------------------------------------------------------


class Server:
    """A running command, and what it printed."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{20,})", address)
        assert found is not None, address
        self.process, self.address = process, address
        self.port, self.token = int(found[1]), found[2]

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        connection.request(method, path, body, named)
        found = connection.getresponse()
        text = found.read().decode()
        connection.close()
        return found, text

    @property
    def allowed(self) -> dict[str, str]:
        return {
            "Cookie": f"pyengine-explore-{self.port}={self.token}",
            "Origin": f"http://127.0.0.1:{self.port}",
        }


@contextlib.contextmanager
def serving(*words: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "pyengine", "explore", "--port", "0", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            yield Server(process, address)
        finally:
            process.send_signal(signal.SIGINT)  # which saves what coverage has measured
            try:
                process.wait(timeout=60)
            finally:
                process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def test_only_who_has_the_token(server: Server) -> None:
    paths = ("/", "/?token=wrong", "/?token=", "/style.css", "/explore.js", "/chart.js")
    for path in paths:
        for cookie in ("", f"pyengine-explore-{server.port}=wrong", "x=y"):
            found, text = server.ask("GET", path, Cookie=cookie)
            assert found.status == 403
            assert text.startswith("This page is for whoever started")
    found, _ = server.ask("GET", f"/?token={server.token}")
    assert (found.status, found.getheader("location")) == (303, "/")
    cookie = found.getheader("set-cookie") or ""
    assert cookie.startswith(f"pyengine-explore-{server.port}={server.token}; ")
    assert {"HttpOnly", "SameSite=lax"} <= set(cookie.split("; "))
    for path in ("/", "/style.css", "/explore.js", "/chart.js"):
        found, text = server.ask("GET", path, **server.allowed)
        assert found.status == 200
        assert server.token not in text


def test_every_answer_has_the_headers(server: Server) -> None:
    for method, path in (("GET", "/"), ("GET", "/nothing"), ("DELETE", "/"), ("POST", "/answers")):
        found, _ = server.ask(method, path)
        assert found.status >= 400
        for name, value in HEADERS.items():
            assert found.getheader(name) == value
        assert found.getheader("server") is None


def test_only_pages_of_this_server_ask(server: Server) -> None:
    question = json.dumps({"slot": "a", "settings": GIVEN})
    found, text = server.ask("POST", "/answers", question, **server.allowed)
    assert found.status == 200
    assert json.loads(text)["figures"][0]["printed"] == "1.1"
    for change in (
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Cookie": ""},
        {"Host": "example.org"},  # a name that someone points at this machine
    ):
        found, _ = server.ask("POST", "/answers", question, **{**server.allowed, **change})
        assert found.status == (400 if "Host" in change else 403)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400),
        ("nonsense", 400),
        ("[]", 400),
        ('{"slot": 1, "settings": {}}', 400),
        ('{"slot": "a"}', 400),
        ("[" * 9_000, 400),
        (" " * 10_001, 413),
    ],
)
def test_wrong_questions(server: Server, body: str, status: int) -> None:
    found, text = server.ask("POST", "/answers", body, **server.allowed)
    assert found.status == status
    assert json.loads(text)["error"]


def test_a_wrong_setting_is_named(server: Server) -> None:
    question = json.dumps({"slot": "a", "settings": {**GIVEN, "noise_multiplier": -1}})
    found, text = server.ask("POST", "/answers", question, **server.allowed)
    assert found.status == 200
    assert json.loads(text) == {
        "error": "noise multiplier must be a number in [0.01, 10000], got -1",
        "setting": "noise_multiplier",
    }


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no /proc")
def test_an_interrupt_ends_all_of_it() -> None:
    with serving() as server:
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        slow = {**GIVEN, "threat_model": "relaxed", "size": "rate", "steps": 10**6}
        question = json.dumps({"slot": "a", "settings": slow})
        server.ask("GET", "/")  # it is there
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/answers", question, server.allowed)
        computing = children.read_text().split()
        assert len(computing) == 1
        connection.close()
        server.process.send_signal(signal.SIGINT)
        printed, said = server.process.communicate(timeout=30)
        assert server.process.returncode == 0
        assert printed.endswith("ended\n")
        assert said == ""
        for pid in computing:
            with pytest.raises(ProcessLookupError):
                os.kill(int(pid), 0)


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "x"], "--port must be a non-negative integer"),
        (["--port", "65536"], "port must lie in [0, 65535], got 65536"),
        (["--port", "-1"], "--port must be a non-negative integer"),
        (["--seconds", "0"], "--seconds must"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["explore", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"pyengine: error: port {port}: Address already in use; give another --port, or 0 for any "
        "that is free\n"
    )


def test_without_its_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["explore"]) == 2
    assert "the page needs jinja2: pip install 'pyengine-dp[explore]'" in capsys.readouterr().err


# ---- in a browser --------------------------------------------------------------------------------

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield made
        made.close()


@contextlib.contextmanager
def opened(browser: Any, address: str, width: int = 1280) -> Iterator[Any]:
    """A page, on whose console nothing may be said: the policy complains there, too."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.set_default_timeout(30_000)
    made.goto(address)
    made.wait_for_selector("#figures td .proven")
    yield made
    context.close()
    assert not said


def until(page: Any, condition: str) -> None:
    """Wait for a condition; the driver's own way needs eval, which the page's policy forbids."""
    end = time.monotonic() + 30.0
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(30)


def shown(page: Any, run: int = 0) -> list[str]:
    rows = page.locator("#figures tbody tr").all()
    return [row.locator("td").nth(run).inner_text().split()[0] for row in rows]


def field(page: Any, run: int, name: str) -> Any:
    return page.locator(".run").nth(run).locator(f"[data-name={name}]")


def test_answers_follow_the_slider(browser: Any, server: Server) -> None:
    with opened(browser, server.address) as page:
        assert server.token not in page.url
        assert shown(page)[0] == "1.1"
        slider = field(page, 0, "noise_multiplier").locator(".slider")
        slider.focus()
        seen = []
        for _ in range(6):
            page.keyboard.press("PageUp")
            was = seen[-1] if seen else "1.1"
            until(page, f"document.querySelector('#figures td').firstChild.data !== '{was}'")
            seen.append(page.evaluate("document.querySelector('#figures td').firstChild.data"))
        values = [float(text) for text in seen]
        assert values == sorted(values, reverse=True)
        noise = float(field(page, 0, "noise_multiplier").locator(".value").input_value())
        until(page, "!document.querySelector('#figures .estimate')")
        run = pe.dp_sgd(noise, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson")
        assert float(shown(page)[0]) == pytest.approx(pe.epsilon(run, 1e-5), rel=2e-3)


def test_figures_of_the_settings_before_are_faint(browser: Any, server: Server) -> None:
    """While a long answer is computed, what stands beside the new settings is not theirs."""
    with opened(browser, server.address) as page:
        page.route("**/answers", lambda _: None)  # held until the route goes
        until(page, "!document.querySelector('#figures .old')")
        field(page, 0, "noise_multiplier").locator(".value").fill("3")
        until(page, "document.querySelectorAll('#figures .old').length > 0")
        assert page.inner_text("#state").startswith("Computing")
        assert shown(page)[0] == "1.1"
        page.unroute("**/answers")
        until(page, "!document.querySelector('#figures .old')")
        assert float(shown(page)[0]) < 0.5


def test_runs_beside_each_other_and_the_link(browser: Any, server: Server) -> None:
    with opened(browser, server.address) as page:
        page.click("#add")
        field(page, 1, "noise_multiplier").locator(".value").fill("2")
        cells = "[...document.querySelectorAll('#figures tbody tr:first-child td')]"
        figures = f"{cells}.map((x) => x.innerText.split(/\\s/)[0])"
        until(page, f"(([x, y]) => x !== y)({figures})")  # of the new noise
        until(page, "document.querySelectorAll('#figures tbody .proven').length === 14")
        assert page.locator(".chart").first.locator(".curve").count() == 2
        until(page, "location.hash.includes('noise_multiplier=2')")
        link, first = page.evaluate("location.href"), shown(page, 1)
        assert float(first[0]) < float(shown(page, 0)[0])
        page.goto("about:blank")
        page.goto(link)  # the cookie lets in
        until(page, "document.querySelectorAll('#figures tbody .proven').length === 14")
        assert shown(page, 1) == first
        page.locator(".remove").first.click()
        assert page.locator(".run").count() == 1
        assert shown(page) == first
    # with the token, for a browser that has no cookie yet
    with opened(browser, f"{server.address}{link[link.index('#') :]}") as page:
        assert page.locator(".run").count() == 2


def test_wrong_input_is_said_beside_it(browser: Any, server: Server) -> None:
    with opened(browser, server.address) as page:
        noise = field(page, 0, "noise_multiplier")
        noise.locator(".value").fill("")
        page.wait_for_selector(".problem:not([hidden])")
        assert page.inner_text(".problem") == (
            "noise multiplier must be a number in [0.01, 10000], got nothing"
        )
        assert "wrong" in noise.get_attribute("class")
        assert page.locator("#figures td.old").count() in (5, 7)  # without proofs, and with them
        noise.locator(".value").fill("1")
        page.wait_for_selector(".problem", state="hidden")
        assert page.locator("#figures td.old").count() == 0


def test_choices_show_what_counts(browser: Any, server: Server) -> None:
    with opened(browser, server.address) as page:
        run = page.locator(".run").first
        assert run.locator("[data-name=steps]").is_hidden()
        run.locator("select[data-name=size]").select_option("rate")
        assert run.locator("[data-name=steps]").is_visible()
        assert run.locator("[data-name=batch_size]").is_hidden()
        assert run.locator("[data-name=dimension]").is_hidden()
        run.locator("select[data-name=sampling]").select_option("none")
        run.locator("select[data-name=threat_model]").select_option("relaxed")
        assert run.locator("[data-name=dimension]").is_visible()
        until(page, "document.querySelectorAll('#figures tbody tr').length === 5")


def test_a_link_cannot_bring_markup(browser: Any, server: Server) -> None:
    run = "noise_multiplier=%3Cimg%20src=x%3E,sampling=%3Cb%3E,x=y,__proto__=1,delta=%FF"
    bad = f"#run=&=&nothing&run={run}"
    with opened(browser, f"{server.address}{bad}") as page:
        assert page.locator("img").count() == 0
        assert page.locator("select[data-name=sampling]").first.input_value() == "poisson"


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_overflows(browser: Any, server: Server, width: int) -> None:
    with opened(browser, server.address, width) as page:
        page.click("#add")
        until(page, "document.querySelectorAll('#figures tbody td').length >= 10")
        page.locator("#asked summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
