"""Figures and tables of the papers, regenerated.

One module for each paper holds ``PAPER``, a `Paper` of figures and tables (``item``); ``registry``
lists them and ``run`` makes their files.
"""
