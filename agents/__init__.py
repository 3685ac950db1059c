"""Agents: learned methods that act in an environment or choose the next evaluation."""

if __name__ != "moopt.agents":
    raise ImportError("import moopt.agents, not agents")
