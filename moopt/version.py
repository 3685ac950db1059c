"""The version of moopt, a literal so that packaging tools can read it without importing anything."""

__version__ = "0.1.0"
