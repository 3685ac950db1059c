import numpy as np
import pytest
from gymnasium import spaces

from moopt.envs.spaces import ActionCodec, ObservationCodec

SPACES = [
    spaces.Box(-1, 1, (3,), np.float64),
    spaces.Box(-1, 1, (2, 3), np.float32),
    spaces.Box(0, 9, (4,), np.int32),
    spaces.Discrete(5),
    spaces.Discrete(3, start=2),
    spaces.MultiBinary(4),
    spaces.MultiDiscrete([2, 3]),
    spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (2,))]),
    spaces.Dict({"b": spaces.MultiBinary(2), "a": spaces.Discrete(3)}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_observations_equal_gymnasium_flatten(space):
    codec = ObservationCodec.of(space, "x")
    space.seed(0)
    buffer = np.full((3, codec.size), 7.0, np.float32)
    rows = codec.rows(buffer)
    for i in range(3):
        obs = space.sample()
        rows[i] = codec.encode(obs)
        assert np.array_equal(buffer[i], spaces.flatten(space, obs).astype(np.float32))
    assert codec.flat_space.dtype == np.float32
    assert codec.flat_space.shape == (codec.size,)


def test_box_actions():
    codec = ActionCodec.of(spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, np.inf]), dtype=np.float64), "x")
    assert (codec.kind, codec.size) == ("box", 2)
    given = np.ones((3, 2), np.float32)
    checked = codec.check(given, 3)
    assert checked.dtype == np.float64
    assert not np.shares_memory(checked, given)
    assert codec.check(given.astype(np.float64), 3) is not given
    with pytest.raises(ValueError, match=r"shape \(3, 2\), got \(2, 3\)"):
        codec.check(np.ones((2, 3)), 3)


def test_discrete_actions_start_at_zero():
    codec = ActionCodec.of(spaces.Discrete(3, start=5), "x")
    assert codec.to_env(codec.check([0, 2], 2)) == [5, 7]
    with pytest.raises(ValueError, match=r"0\.\.2, got 0\.\.3"):
        codec.check([0, 3], 2)
    with pytest.raises(ValueError, match=r"0\.\.2, got -1\.\.0"):
        codec.check([0, -1], 2)
    with pytest.raises(ValueError, match="integers, got dtype float64"):
        codec.check([0.0, 1.0], 2)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        codec.check(1, 2)
