"""Figures of fronts and runs."""
