import numpy as np
import pytest

from moopt.envs.seeding import EpisodeSeeds, as_seed_sequence


def test_seeds_are_fresh_and_disjoint():
    seeds = EpisodeSeeds(np.random.SeedSequence(0))
    drawn = [seeds(e, k) for e in range(8) for k in range(100)]
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= s < 2**31 for s in drawn)


def test_seeds_do_not_depend_on_the_order_of_asking():
    forward = EpisodeSeeds(np.random.SeedSequence(5))
    backward = EpisodeSeeds(np.random.SeedSequence(5))
    pairs = [(e, k) for e in range(3) for k in range(70)]
    assert [forward(*p) for p in pairs] == [backward(*p) for p in reversed(pairs)][::-1]


def test_children_of_one_root_differ():
    a, b = np.random.SeedSequence(1).spawn(2)
    assert EpisodeSeeds(a)(0, 0) != EpisodeSeeds(b)(0, 0)


@pytest.mark.parametrize("entropy", [0, 7, 2**32, 2**100 + 3, [1, 2, 3]])
@pytest.mark.parametrize("key", [(), (3,), (1, 2**40)])
def test_words_rebuild_the_same_seeds(entropy, key):
    seeds = EpisodeSeeds(np.random.SeedSequence(entropy, spawn_key=key))
    again = EpisodeSeeds.from_words(*seeds.words())
    assert [again(e, k) for e in range(3) for k in range(40)] == [seeds(e, k) for e in range(3) for k in range(40)]


@pytest.mark.parametrize("bad", [-1, 1.5, "1", None, True])
def test_wrong_seeds(bad):
    with pytest.raises(TypeError, match="seed must be a non-negative integer"):
        as_seed_sequence(bad)
