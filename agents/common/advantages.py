"""Generalized advantage estimation for vector rewards."""

from torch import Tensor


def vector_gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    dones: Tensor,
    gamma: float,
    lam: float,
) -> Tensor:
    r"""Return the generalized advantage of every objective.

    .. math:: A_t = \delta_t + \gamma\lambda (1 - d_t) A_{t+1}, \quad
              \delta_t = r_t + \gamma (1 - e_t) V(s'_t) - V(s_t)

    with :math:`d_t` the end of the episode for whatever reason and :math:`e_t` its termination alone: an episode cut
    by a time limit is bootstrapped from the value of its last observation.

    Args:
        rewards: (T, ..., n).
        values: (T, ..., n), V(s_t).
        next_values: (T, ..., n), V(s'_t) of the observation that step t led to, before any reset.
        terminated: (T, ...) of zeros and ones, true terminations.
        dones: (T, ...) of zeros and ones, terminations and truncations.
        gamma: Discount factor.
        lam: Trace decay.

    Returns:
        (T, ..., n).

    Source:
        Schulman et al. 2016, eq. 16, applied to each objective alone.
    """
    delta = rewards + gamma * next_values * (1.0 - terminated).unsqueeze(-1) - values
    decay = (gamma * lam * (1.0 - dones)).unsqueeze(-1)
    advantages = delta
    for t in range(len(delta) - 2, -1, -1):
        advantages[t].addcmul_(decay[t], advantages[t + 1])
    return advantages
