"""Samplers: learned methods that draw points or parameters."""

if __name__ != "moopt.samplers":
    raise ImportError("import moopt.samplers, not samplers")
