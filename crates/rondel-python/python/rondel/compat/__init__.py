"""Monitors with the interfaces of other tools.

Import :mod:`rondel.compat.rtamt` in place of ``rtamt``, :mod:`rondel.compat.reelay` in place of ``reelay``.
"""
