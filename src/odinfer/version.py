"""The version of the package, which files and reports carry."""

__version__ = "0.2.0"
