"""The gate on instruction counts: it stops what it should, and is not satisfied by nothing."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from icount import __main__ as command
from icount import build, clones, ratchet, valgrind
from icount.measurements import PYTHON, count_questions
from icount.ratchet import Clones, Part, Record
from icount.valgrind import CountError, Counts

needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed"
)
VERSIONS = {"compiler": "GCC: 12", "valgrind": "3.19.0"}
RECORDED = Part(VERSIONS, {"one": 100_000, "other": 50_000})


def counts(**instructions: int) -> Counts:
    return Counts(instructions, {})


# ---- judging and recording -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "within", "above"), [("kernels", 1.02, 1.0201), ("questions", 1.05, 1.0501)]
)
def test_limits(part: str, within: float, above: float) -> None:
    for ratio, expected in ((1.0, 0), (within, 0), (above, 1)):
        measured = counts(one=int(100_000 * ratio), other=50_000)
        failures = ratchet.judge(part, RECORDED, measured, VERSIONS).failures
        assert len(failures) == expected
        assert all(line.startswith("one: ") for line in failures)


def test_a_doubled_count_fails() -> None:
    verdict = ratchet.judge("kernels", RECORDED, counts(one=200_000, other=50_000), VERSIONS)
    assert verdict.failures == [
        "one: 200,000 instructions, +100.0% of the recorded 100,000; the limit is +2%"
    ]


def test_less_asks_to_be_recorded_and_much_less_fails() -> None:
    verdict = ratchet.judge("kernels", RECORDED, counts(one=97_000, other=24_000), VERSIONS)
    assert [line.split(":")[0] for line in verdict.improved] == ["one"]
    assert [line.split(":")[0] for line in verdict.failures] == ["other"]


def test_what_is_missing_unknown_or_failed_fails_with_any_versions() -> None:
    measured = Counts({"new": 5000}, {"one": "failed with status 11"})
    for versions in (VERSIONS, {**VERSIONS, "compiler": "GCC: 13"}):
        failures = ratchet.judge("kernels", RECORDED, measured, versions).failures
        assert failures == [
            "one: failed with status 11",
            "new: not recorded; `make icount-record` adds it",
            "other: recorded, but no longer measured",
        ]


def test_other_versions_report_loudly_and_do_not_fail() -> None:
    versions = {**VERSIONS, "compiler": "GCC: 13"}
    verdict = ratchet.judge("kernels", RECORDED, counts(one=200_000, other=1000), versions)
    assert not verdict.failures
    assert not verdict.improved
    assert verdict.notes == [
        "the kernels are REPORTED ONLY, NOT JUDGED: other versions, "
        "compiler GCC: 13 (recorded: GCC: 12)"
    ]


def test_recording_only_lowers() -> None:
    measured = counts(one=90_000, other=60_000, new=7000)
    part, refused = ratchet.lowered(RECORDED, measured, VERSIONS, [])
    assert part.instructions == {"one": 90_000, "other": 50_000, "new": 7000}
    assert refused == ["other"]
    part, refused = ratchet.lowered(RECORDED, measured, VERSIONS, ["other"])
    assert part.instructions["other"] == 60_000
    assert not refused
    fresh = {**VERSIONS, "compiler": "GCC: 13"}
    assert ratchet.lowered(RECORDED, measured, fresh, []) == (
        Part(fresh, measured.instructions),
        [],
    )


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "instructions.toml"
    assert ratchet.load(path).parts == {}
    record = Record({"kernels": RECORDED, "questions": RECORDED}, Clones("a CPU", {"one": 0.75}))
    ratchet.save(record, path)
    assert ratchet.load(path) == record


def test_the_record_has_all_work() -> None:
    parts = ratchet.load().parts
    assert set(parts) == set(ratchet.LIMITS)
    text = "".join(path.read_text(encoding="utf-8") for path in build.kernel_files())
    assert set(re.findall(r'^KERNEL\("(\w+)"', text, re.M)) == set(parts["kernels"].instructions)


def test_the_command_fails_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "instructions.toml"
    ratchet.save(Record({"kernels": RECORDED}, Clones("", {})), path)
    monkeypatch.setattr(clones, "why_not", lambda: "the processor has no avx512f")
    for measured, code in ((counts(one=100_000, other=50_000), 0), (counts(one=105_000), 1)):
        monkeypatch.setattr(
            command, "MEASUREMENTS", {"kernels": lambda found=measured: (found, VERSIONS)}
        )
        assert command.check(path) == code
    out = capsys.readouterr().out
    assert "SKIPPED, the processor has no avx512f" in out
    assert "icount: FAILED: one: 105,000 instructions, +5.0% of the recorded 100,000" in out
    assert "icount: FAILED: other: recorded, but no longer measured" in out


@pytest.mark.parametrize(("last", "code"), [(100_099, 0), (100_101, 1)])
def test_counts_that_differ_fail(
    last: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = iter([100_000, 100_050, last])
    measure = {"kernels": lambda: (counts(one=next(found), other=7_000), VERSIONS)}
    monkeypatch.setattr(command, "MEASUREMENTS", measure)
    assert command.repeat(3, ["kernels"]) == code
    assert f"3 times, counts differ by at most {last / 1e5 - 1:.4%}" in capsys.readouterr().out
    broken = {"kernels": lambda: (Counts({}, {"one": "crashed"}), VERSIONS)}
    monkeypatch.setattr(command, "MEASUREMENTS", broken)
    with pytest.raises(CountError, match="one: crashed"):
        command.repeat(2, ["kernels"])


def test_clones() -> None:
    recorded = {"one": 0.7, "two": 1.0}
    assert not clones.judge(recorded, {"one": 0.87, "two": 1.24, "new": 5.0})
    assert [line.split(":")[0] for line in clones.judge(recorded, {"one": 0.88, "two": 1.0})] == [
        "one"
    ]


@pytest.mark.parametrize(
    ("recorded", "attempts", "least"),
    [
        (None, 3, 0.6),  # to record
        ({}, 1, 0.9),  # not judged
        ({"one": 0.75}, 1, 0.9),
        ({"one": 0.65}, 2, 0.8),
        ({"one": 0.4}, 3, 0.6),  # too large each time
    ],
)
def test_clones_are_timed_again_while_one_is_too_slow(
    recorded: dict[str, float] | None, attempts: int, least: float
) -> None:
    found = iter([0.9, 0.8, 0.6])
    assert clones.least(lambda: {"one": next(found)}, recorded) == {"one": least}
    assert len(list(found)) == 3 - attempts


# ---- measuring -----------------------------------------------------------------------------------

KERNEL = """
#include "kernel.h"

static double in[4096], out[4096];

static void prepare(void)
{
    for (size_t i = 0; i < 4096; i++)
        in[i] = icount_between(-9.0, 9.0, i);
}

static void work(void)
{
    WORK
}
KERNEL("work", prepare, work);
"""
NDTR = "pe_ndtr_array(in, out, 4096);"


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A core of one source: the whole one takes a minute to compile."""
    monkeypatch.setattr(build, "KEPT", tmp_path / "kept")
    directory = tmp_path / "csrc"
    directory.mkdir()
    source = build.ROOT / "csrc"
    for path in [
        *source.glob("*.h"),
        *source.glob("*.cdef"),
        source / "build_ffi.py",
        source / "normal.c",
    ]:
        shutil.copy(path, directory)
    return directory


def driver(core: Path, work: str) -> list[str]:
    path = core.parent / "work.c"
    path.write_text(KERNEL.replace("WORK", work), encoding="utf-8")
    return [str(build.build(core, [path]).path)]


@needs_valgrind
def test_a_driver_that_does_the_work_twice_fails(core: Path) -> None:
    once = [valgrind.measure(driver(core, NDTR)) for _ in range(3)]
    assert once[0] == once[1] == once[2]
    assert not once[0].failed
    part = Part(VERSIONS, once[0].instructions)
    assert not ratchet.judge("kernels", part, once[1], VERSIONS).failures
    twice = valgrind.measure(driver(core, NDTR + NDTR))
    assert abs(twice.instructions["work"] / once[0].instructions["work"] - 2.0) < 1e-3
    (failure,) = ratchet.judge("kernels", part, twice, VERSIONS).failures
    assert failure.startswith("work: ")


@needs_valgrind
@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("", "was not done"),
        ("abort();", "failed with status"),
        ('icount_require(0, "good");', "failed with status"),
    ],
)
def test_empty_and_crashed_work_fails(core: Path, work: str, why: str) -> None:
    found = valgrind.measure(driver(core, work))
    assert not found.instructions
    assert why in found.failed["work"]
    failures = ratchet.judge("kernels", Part(VERSIONS, {"work": 9}), found, VERSIONS).failures
    assert len(failures) == 1


@needs_valgrind
def test_a_driver_without_work_fails() -> None:
    with pytest.raises(CountError, match="measured nothing"):
        valgrind.measure([shutil.which("true") or "true"])
    with pytest.raises(CountError, match="ended with"):
        valgrind.measure([shutil.which("false") or "false"])


def test_no_valgrind_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CountError, match="valgrind is not installed"):
        valgrind.measure(["/bin/true"])


def test_a_kernel_that_does_not_compile_is_named(core: Path) -> None:
    path = core.parent / "broken.c"
    path.write_text(
        '#include "kernel.h"\ndouble f(void);\ndouble f(void) { return pe_no_such(1.0); }\n',
        encoding="utf-8",
    )
    assert "pe_no_such" in build.build(core, [path]).failed["broken"]
    (core / "normal.c").write_text("int x = ;\n", encoding="utf-8")
    with pytest.raises(CountError, match=r"normal\.c does not compile"):
        build.build(core, [])


QUESTIONS = """
def stages():
    import pyengine as pe
    from pyengine.special import ncx2_sf

    def once():
        for i in range(50):
            ncx2_sf(10.0 + i, 3.0, 4.0)

    def twice():
        once()
        once()

    def crash():
        raise ValueError("no")

    def nothing():
        pass

    yield {"once": (nothing, once), "twice": (nothing, twice), "crash": (nothing, crash),
           "empty": (nothing, nothing)}
"""


@needs_valgrind
def test_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions.py"
    path.write_text(QUESTIONS, encoding="utf-8")
    found, versions = count_questions(path)
    once, twice = found.instructions["once"], found.instructions["twice"]
    assert 1.9 < twice / once < 2.1
    part = Part(versions, {"twice": once})
    failures = ratchet.judge("questions", part, Counts({"twice": twice}, {}), versions).failures
    assert [line.split(":")[0] for line in failures] == ["twice"]
    assert "failed with status" in found.failed["crash"]
    assert "was not done" in found.failed["empty"]


def test_the_questions_are_those_recorded() -> None:
    text = (PYTHON / "questions.py").read_text(encoding="utf-8")
    recorded = ratchet.load().parts["questions"].instructions
    named = set(re.findall(r'^ {8}"(\w+)":', text, re.M)) | {"import", "first_question"}
    assert named <= set(recorded)
    assert all(
        name in named or name.startswith(("gamma_", "bounds_", "made_")) for name in recorded
    )


# ---- the same figures in asv, which .ci/run does not count a second time -------------------------


def test_benchmarks_of_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = runpy.run_path(str(build.ROOT / "asv_bench" / "benchmarks" / "instructions.py"))
    asked: list[object] = []

    def counted(*what: object, **named: object) -> tuple[Counts, dict[str, str]]:
        asked.extend((what, named))
        return counts(first=7), VERSIONS

    for part, name in (("Kernels", "count_kernels"), ("WholeQuestions", "count_questions")):
        benchmark = found[part]()
        monkeypatch.setitem(type(benchmark).setup_cache.__globals__, name, counted)
        kept = benchmark.setup_cache()
        assert benchmark.track_instructions(kept, "first") == 7
        assert benchmark.track_instructions(kept, "unknown to this commit") != 7
        recorded = ratchet.load().parts[name.removeprefix("count_")].instructions
        assert benchmark.params[0]
        assert set(benchmark.params[0]) <= set(recorded)
    assert asked == [(build.ROOT / "csrc",), {}, (), {"names": benchmark.params[0]}]


def test_benchmarks_count_the_commit_that_asv_has_built(
    core: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository = core.parent
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for words in (["init", "-q"], ["add", "csrc"], [*author, "commit", "-q", "-m", "a core"]):
        subprocess.run(["git", "-C", str(repository), *words], check=True)
    (core / "normal.c").write_text("changed since\n", encoding="utf-8")
    made = runpy.run_path(str(build.ROOT / "asv_bench" / "benchmarks" / "instructions.py"))["_core"]
    monkeypatch.setitem(made.__globals__, "ROOT", repository)
    monkeypatch.setenv("ASV_COMMIT", "HEAD")
    found = made(tmp_path / "built")
    assert found == tmp_path / "built" / "csrc"
    committed = (build.ROOT / "csrc" / "normal.c").read_bytes()
    assert (found / "normal.c").read_bytes() == committed


def test_what_is_recorded_can_ring() -> None:
    """Counts are whole numbers of work that was done, ratios of times are near 1."""
    record = ratchet.load()
    for part in record.parts.values():
        assert all(isinstance(n, int) and n > 1000 for n in part.instructions.values())
    assert set(record.clones.ratios) <= set(record.parts["kernels"].instructions)
    assert all(0.1 < ratio < 2.0 for ratio in record.clones.ratios.values())
