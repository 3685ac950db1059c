import numpy as np
import torch

from moopt.agents.common.advantages import vector_gae
from moopt.agents.common.population import EpisodeReturns
from moopt.agents.common.statistics import ReturnScaler, RunningMoments


def slow_gae(rewards, values, next_values, terminated, dones, gamma, lam):
    """Advantage as the explicit sum of discounted temporal differences, one objective and one copy at a time."""
    T, E, n = rewards.shape
    advantages = np.zeros_like(rewards)
    for e in range(E):
        for k in range(n):
            for t in range(T):
                factor, total = 1.0, 0.0
                for s in range(t, T):
                    bootstrap = 0.0 if terminated[s, e] else next_values[s, e, k]
                    total += factor * (rewards[s, e, k] + gamma * bootstrap - values[s, e, k])
                    if dones[s, e]:
                        break
                    factor *= gamma * lam
                advantages[t, e, k] = total
    return advantages


def test_vector_gae_is_the_explicit_sum():
    rng = np.random.default_rng(0)
    T, E, n = 25, 4, 3
    rewards, values, next_values = rng.normal(size=(3, T, E, n))
    terminated = rng.random((T, E)) < 0.1
    truncated = rng.random((T, E)) < 0.1
    dones = terminated | truncated
    expected = slow_gae(rewards, values, next_values, terminated, dones, 0.97, 0.9)
    tensors = [
        torch.from_numpy(np.asarray(x, dtype=np.float64)) for x in (rewards, values, next_values, terminated, dones)
    ]
    result = vector_gae(*tensors, 0.97, 0.9)
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)


def test_moments_of_batches_are_the_moments_of_all():
    rng = np.random.default_rng(1)
    data = rng.normal(3.0, 2.0, size=(2, 90, 4))
    moments = RunningMoments.create(2, 4)
    for part in np.split(data, [10, 11, 60], axis=1):
        moments.update(part)
    np.testing.assert_allclose(moments.mean, data.mean(1), atol=1e-12)
    np.testing.assert_allclose(moments.var, data.var(1), atol=1e-12)
    again = RunningMoments.from_state_dict(moments.take(np.array([1, 1])).state_dict())
    np.testing.assert_array_equal(again.mean, moments.mean[[1, 1]])


def test_constant_features_do_not_explode():
    moments = RunningMoments.create(1, 1)
    moments.update(np.full((1, 50, 1), 7.0))
    assert moments.std().min() >= 1e-2


def test_return_scale_follows_the_discounted_sum_within_episodes():
    rng = np.random.default_rng(2)
    T, M, E, n, gamma = 40, 2, 3, 2, 0.9
    rewards, dones = rng.normal(size=(T, M, E, n)), rng.random((T, M, E)) < 0.2
    scaler = ReturnScaler(M, E, n, gamma)
    scaler.update(rewards[:15], dones[:15])
    scaler.update(rewards[15:], dones[15:])
    sums = np.zeros((T, M, E, n))
    for m in range(M):
        for e in range(E):
            running = np.zeros(n)
            for t in range(T):
                running = gamma * running + rewards[t, m, e]
                sums[t, m, e] = running
                if dones[t, m, e]:
                    running = np.zeros(n)
    np.testing.assert_allclose(scaler.scale() ** 2, sums.transpose(1, 0, 2, 3).reshape(M, -1, n).var(1), atol=1e-6)


def test_episode_returns_are_discounted_from_each_start():
    tracker = EpisodeReturns(1, 2, 1, gamma=0.5)
    rewards = np.ones((4, 1, 2, 1))
    dones = np.zeros((4, 1, 2), dtype=bool)
    dones[1, 0, 0] = dones[3, 0, 0] = True
    returns = tracker.update(rewards, dones)
    np.testing.assert_allclose(returns, [[1.5]])
    dones[:] = False
    dones[0, 0, 1] = True
    np.testing.assert_allclose(tracker.update(rewards, dones), [[1.0 + 0.5 + 0.25 + 0.125 + 0.0625]])
    assert np.isnan(tracker.update(rewards, np.zeros_like(dones))).all()
