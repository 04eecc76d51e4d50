"""Instruction counts: what `make icount` measures and compares with tests/data/instructions.toml.

Times on a shared machine vary by 20 % and more; the number of instructions of a fixed question does
not vary. `c/` has one piece of work for each kernel, `python/` whole questions. Both run under
``valgrind --tool=cachegrind``, each in its own child process, beside a child that does not do the
work. docs/developer/testing.md explains the use.
"""
