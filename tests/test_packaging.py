"""What is built loads on other machines, says what is in it, and says what it lacks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import pyengine
from pyengine._support.lazy import MOVED, spec_of_moved
from pyengine._version import DISTRIBUTION
from pyengine.cli import main, version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
MODULES = sorted(Path(pyengine.__file__).parent.glob("_*.so"))
OLDEST = (2, 28)  # of glibc, as manylinux_2_28


SUFFIXES = (".md", ".py", ".yml", ".yaml", ".toml", ".json", ".jinja", ".js", "Makefile")
MADE = {".venv", ".venv-peers", ".git", "build", "_build", "env"}  # not written by hand
INSTALLER = re.compile(
    r"\b(?:pip3?|pipx|uv|conda|mamba|poetry|pdm)\b.*?"
    r"(?:\b(?:install|add)\b|--reinstall-package)([^#`|&;]*)"
)
STRANGER = re.compile(r"""(?<![\w./@-])pyengine(?=\[|[=<>~!]=|['"\s,)]|$)""")


def told(line: str) -> bool:
    """Whether a line tells to install what is somebody else's."""
    found = INSTALLER.search(line)
    # extras belong to nothing but a distribution
    return bool(found and STRANGER.search(found[1])) or bool(re.search(r"['\"]pyengine\[\w", line))


def texts() -> Iterator[Path]:
    """Files that people read or copy; the changelog says what was once said."""
    for directory, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name not in MADE]
        for name in names:
            if name.endswith(SUFFIXES) and name != "CHANGELOG.md":
                yield Path(directory, name)


def test_nothing_tells_anyone_to_install_another_package() -> None:
    """The index has a pyengine, and it is somebody else's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "pyengine-dp"
    paths = list(texts())
    assert len(paths) > 300
    strange = {
        f"{path.relative_to(ROOT)}: {line}"
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if told(line)
    }
    assert strange == set()
    assert "--reinstall-package pyengine-dp " in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install OTHER", True),
        ("      - run: pip install asv OTHER dp-accounting", True),
        ("pip install 'OTHER[opacus]'", True),
        ('{what} needs {module}: pip install "OTHER==0.1"', True),
        ("uv add OTHER", True),
        ("conda install -c conda-forge OTHER", True),
        ("needs 'OTHER[reference]'", True),
        ("pip install 'OTHER-dp[opacus]'", False),
        ("pip install asv ./OTHER", False),
        ("pip install . && OTHER doctor", False),
        ("pip install .", False),
    ],
)
def test_what_tells_to_install_another_package(line: str, wrong: bool) -> None:
    assert told(line.replace("OTHER", "pyengine")) is wrong


def test_modules_are_of_the_stable_abi() -> None:
    assert [path.name for path in MODULES] == [
        "_core.abi3.so",
        "_objects.abi3.so",
        "_ufuncs.abi3.so",
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_modules_ask_for_old_symbols_only(path: Path) -> None:
    asked = re.findall(rb"GLIBC_(\d+)\.(\d+)", path.read_bytes())
    assert asked or path.name.startswith("_objects")  # which calls nothing but Python
    assert all((int(major), int(minor)) <= OLDEST for major, minor in asked)


def test_a_build_leaves_the_loaded_library_alone(tmp_path: Path) -> None:
    """Written over, it crashed a process that had it loaded at the next import."""
    put_in_place = runpy.run_path(str(ROOT / "csrc" / "build_archive.py"))["put_in_place"]
    made, folder = tmp_path / "library.so", tmp_path / "lib"
    made.write_bytes(b"old")
    put_in_place(made, folder)
    with (folder / made.name).open("rb") as loaded:
        made.write_bytes(b"new, and longer")
        put_in_place(made, folder)
        assert loaded.read() == b"old"
    assert [path.name for path in folder.iterdir()] == [made.name]
    assert (folder / made.name).read_bytes() == b"new, and longer"


def test_bill_of_materials(tmp_path: Path) -> None:
    """All that the build requires is in the bill, unless none of it ends up in the modules."""
    pytest.importorskip("setuptools")
    build = runpy.run_path(str(ROOT / "csrc" / "build_sbom.py"))
    path = build["write_sbom"](tmp_path / "x.dist-info", DISTRIBUTION, pyengine.__version__)
    assert path == tmp_path / "x.dist-info" / "sboms" / "pyengine-dp.cdx.json"
    text = path.read_text(encoding="utf-8")
    assert build["write_sbom"](tmp_path / "again", DISTRIBUTION, pyengine.__version__).read_text(
        encoding="utf-8"
    ) == (text)
    found = json.loads(text)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    parts = {part["bom-ref"] for part in found["components"]}
    assert set(found["dependencies"][0]["dependsOn"]) == parts
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = {re.split(r"[<>=]", word)[0] for word in project["build-system"]["requires"]}
    assert {part["name"] for part in found["components"]} == required - {"setuptools", "wheel"}


def test_second_names_have_stubs(tmp_path: Path) -> None:
    """What a checker finds by a second name is what Python finds by it."""
    if not (ROOT / "csrc" / "build_names.py").exists():
        pytest.skip("the sources are not here")
    package = Path(pyengine.__file__).parent
    build = runpy.run_path(str(ROOT / "csrc" / "build_names.py"))
    written = build["write_stubs"](package, tmp_path)
    assert {path.relative_to(tmp_path).parts[0] for path in written} >= {
        name for name in MOVED if "." not in name
    }
    for path in written:
        name = ".".join(["pyengine", *path.relative_to(tmp_path).parent.parts])
        (module,) = re.findall(r"from (\S+) import \*", path.read_text(encoding="utf-8"))
        found = importlib.util.find_spec(module)
        assert found is not None
        moved = spec_of_moved(name)
        assert moved is not None
        assert moved.loader.name == module


def test_recipe_has_the_version_and_the_requirements() -> None:
    text = (ROOT / "docs" / "developer" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'name: {DISTRIBUTION}\n  version: "{pyengine.__version__}"' in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run = re.search(r"^  run:\n((?:    - .*\n)+)", text, re.M)
    assert run is not None
    found = {line.strip("- ").replace(" ", "") for line in run[1].splitlines()}
    needed = {word.partition(";")[0].replace(" ", "") for word in project["dependencies"]}
    assert found == needed | {f"python{project['requires-python']}"}


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    run = subprocess.run(
        [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CC": "no-such-compiler"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        "pyengine's core is C, and there is no no-such-compiler here: install a C compiler (Debian"
    )


def test_version_with_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*words: str) -> str:
        run = subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.strip()

    git("init", "-q")
    (tmp_path / "file").write_text("1", encoding="utf-8")
    git("add", "file")
    git("commit", "-q", "-m", "x")
    short = git("rev-parse", "HEAD")[:12]
    assert version.commit(tmp_path) == short
    (tmp_path / "file").write_text("2", encoding="utf-8")
    assert version.commit(tmp_path) == f"{short}-dirty"
    installed = tmp_path / "installed"
    noted = json.dumps({"vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"}})
    for text, expected in ((noted, "0123456789ab"), ("{}", None), (None, None), ("x", None)):
        found = SimpleNamespace(read_text=lambda _, text=text: text)
        monkeypatch.setattr(version, "distribution", lambda _, found=found: found)
        assert version.commit(installed) == expected
    monkeypatch.setattr(version, "commit", lambda: "abc")
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pyengine {pyengine.__version__} (commit abc)\n"
