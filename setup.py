"""The C extensions; everything else is in pyproject.toml."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import numpy as np
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

sys.path.insert(0, "csrc")
from build_archive import put_in_place, write_archive
from build_ffi import (
    OBJECTS_SOURCES,
    PUBLIC_SOURCES,
    UFUNC_SOURCES,
    compile_args,
    depends,
    libraries,
)
from build_names import write_stubs
from build_readme import long_description
from build_sbom import write_sbom

HOME = None  # address of the source, for links of the README: [project.urls] has none yet
# Modules for the stable ABI of Python and NumPy 1.23 load on all later ones: one wheel a platform.
# Python without its global lock has no stable ABI.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
NUMPY = "NPY_1_23_API_VERSION"
MACROS = [("NPY_NO_DEPRECATED_API", NUMPY), ("NPY_TARGET_VERSION", NUMPY)]
LIMITED = [("Py_LIMITED_API", "0x030A0000")] * STABLE


class Build(build_ext):
    """Says at once what is missing where there is no compiler."""

    def build_extensions(self) -> None:
        """Compile all modules."""
        command = getattr(self.compiler, "compiler", None)  # not of Visual C++, which finds its own
        if command and shutil.which(command[0]) is None:
            raise SystemExit(
                f"pyengine's core is C, and there is no {command[0]} here: install a C compiler "
                "(Debian and Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc; "
                "Alpine: apk add gcc musl-dev; macOS: xcode-select --install), or set CC to yours"
            )
        headers = Path(sysconfig.get_paths()["include"])
        if not (headers / "Python.h").exists():
            raise SystemExit(
                f"pyengine's core is C, and Python.h is not in {headers}: install Python's headers "
                "(Debian and Ubuntu: apt-get install python3-dev; Fedora: dnf install "
                "python3-devel; Alpine: apk add python3-dev)"
            )
        super().build_extensions()
        write_stubs(Path("pyengine"), Path(self.build_lib, "pyengine"))
        if os.name == "posix":  # elsewhere `pyengine.get_library` says that there is none
            self.build_library()

    def copy_extensions_to_source(self) -> None:
        """Copy what was built into the tree, for editable installs."""
        super().copy_extensions_to_source()
        write_stubs(Path("pyengine"), Path("pyengine"))
        for path in Path(self.build_lib, "pyengine", "lib").glob("libpyengine.*"):
            put_in_place(path, Path("pyengine/lib"))

    def build_library(self) -> None:
        """Link libpyengine of objects that the extensions have, and of what it exports."""
        place = Path(self.build_lib, "pyengine", "lib")
        place.mkdir(parents=True, exist_ok=True)
        made = self.compiler.compile(
            PUBLIC_SOURCES[:1],
            output_dir=self.build_temp,
            include_dirs=["csrc"],
            extra_postargs=compile_args,
            depends=[*depends, "pyengine/include/libpyengine.h"],
        )
        made += self.compiler.object_filenames(PUBLIC_SOURCES[1:], output_dir=self.build_temp)
        linker = self.compiler.linker_so
        if sys.platform == "darwin":
            name, exported = "libpyengine.dylib", ["-exported_symbols_list", "csrc/public.exported"]
            arguments = ["-install_name", f"@rpath/{name}", *exported]
            self.compiler.linker_so = ["-dynamiclib" if x == "-bundle" else x for x in linker]
        else:
            name = "libpyengine.so"
            arguments = [f"-Wl,-soname,{name}", "-Wl,--version-script=csrc/public.map"]
        self.compiler.link_shared_object(
            made, str(place / name), libraries=libraries, extra_postargs=arguments
        )
        self.compiler.linker_so = linker


class Wheel(bdist_wheel):
    """Puts the bill of materials beside the other metadata (PEP 770)."""

    def write_wheelfile(self, wheelfile_base: str, *args: str) -> None:
        """Write what says how the wheel was built."""
        super().write_wheelfile(wheelfile_base, *args)
        about = self.distribution.metadata
        write_sbom(Path(wheelfile_base), about.get_name(), about.get_version())


class Archive(sdist):
    """Writes the same bytes for the same commit, if ``SOURCE_DATE_EPOCH`` says when that was."""

    def make_archive(self, base_name: str, kind: str, *places: str, **words: str) -> str:
        """Write the archive of the tree of all files."""
        time = os.environ.get("SOURCE_DATE_EPOCH")
        if kind != "gztar" or time is None:
            return str(super().make_archive(base_name, kind, *places, **words))
        target = Path(f"{base_name}.tar.gz")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_archive(Path(words["base_dir"]), target, int(time))
        return str(target)


setup(
    long_description=long_description(Path("README.md"), HOME),
    long_description_content_type="text/markdown",
    options={
        "build_ext": {"parallel": True},
        "bdist_wheel": {"py_limited_api": "cp310" if STABLE else False},
    },
    cmdclass={"bdist_wheel": Wheel, "build_ext": Build, "sdist": Archive},
    cffi_modules=["csrc/build_ffi.py:ffibuilder"],
    ext_modules=[
        Extension(
            "pyengine._ufuncs",
            sources=UFUNC_SOURCES,
            depends=depends,
            include_dirs=["csrc", np.get_include()],
            define_macros=MACROS + LIMITED,
            py_limited_api=STABLE,
            libraries=libraries,
            extra_compile_args=compile_args,
        ),
        Extension(
            "pyengine._objects",
            sources=OBJECTS_SOURCES,
            depends=depends,
            include_dirs=["csrc"],
            define_macros=LIMITED,
            py_limited_api=STABLE,
            libraries=libraries,
            extra_compile_args=compile_args,
        ),
    ],
)
