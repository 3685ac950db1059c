"""Parts that several agents share: stacked networks, running statistics, advantages, PPO, rollouts, evaluation."""
