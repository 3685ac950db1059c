"""C-MORL: a Pareto front of policies by constrained reinforcement learning."""
