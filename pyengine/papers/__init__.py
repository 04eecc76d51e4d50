"""Figures and tables of the papers, regenerated.

One module for each paper holds ``PAPER``, a `pyengine.papers.item.Paper` of figures and tables;
`pyengine.papers.registry` lists them and `pyengine.papers.run` makes their files.
"""
