"""Packs the programs of a bundle (scripts/bundle.sh builds them) as a tar.gz, a wheel and npm packages.

Only the standard library is used. The files depend only on their contents: names are sorted, and every time is that of
the commit.
"""
