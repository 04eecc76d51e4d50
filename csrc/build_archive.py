"""The source archive, the same bytes for the same files, and files put into the tree."""

import gzip
import shutil
import tarfile
from pathlib import Path


def write_archive(tree: Path, target: Path, time: int) -> None:
    """Write a ``.tar.gz``.

    Parameters
    ----------
    tree : Path
        Directory that it holds, under its own name.
    target : Path
        The archive.
    time : int
        Seconds since 1970 that all its entries have.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
        runs = entry.isdir() or entry.mode & 0o100
        entry.mode = 0o755 if runs else 0o644
        return entry

    # the name and the time of a gzip file are in its header
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in [tree, *sorted(tree.rglob("*"))]:
            name = str(path.relative_to(tree.parent))
            archive.add(path, arcname=name, recursive=False, filter=plain)


def put_in_place(made: Path, folder: Path) -> None:
    """Put a library into a folder; a process that has the one before it loaded keeps that.

    Parameters
    ----------
    made : Path
        What was built.
    folder : Path
        Where it goes; it is made if there is none.
    """
    folder.mkdir(exist_ok=True)
    beside = folder / f".{made.name}.new"
    shutil.copy2(made, beside)
    beside.replace(folder / made.name)
