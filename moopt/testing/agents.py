"""Contract that every agent passes; subclass `AgentContract` in a test module and give it a small agent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moopt.pareto import Front
from moopt.runs import MooptError, Progress, Result, RunDir


class AgentContract:
    """Tests of the common behaviour of agents.

    A subclass sets ``total_steps``, a budget of a few seconds, and writes ``make_agent``; ``load_agent`` reads what
    ``save`` wrote.
    """

    total_steps: int

    def make_agent(self, seed: int) -> Any:
        """Return an untrained agent."""
        raise NotImplementedError

    def load_agent(self, directory: Path) -> Any:
        """Return the agent saved in ``directory``."""
        raise NotImplementedError

    def observation(self, agent: Any) -> Any:
        """Return one raw observation of the agent's environment."""
        raise NotImplementedError

    def test_same_seed_same_front(self) -> None:
        """Two trainings with one seed agree to the last bit; another seed differs."""
        first, second, other = (self.make_agent(s).train(self.total_steps) for s in (3, 3, 4))
        np.testing.assert_array_equal(first.front.points, second.front.points)
        assert list(first.front.solutions) == list(second.front.solutions)
        assert first.front.points.shape != other.front.points.shape or not np.array_equal(
            first.front.points, other.front.points
        )

    def test_result_is_complete(self) -> None:
        """The result carries a non-dominated front, a growing history and a budget that was kept."""
        result: Result = self.make_agent(0).train(self.total_steps)
        assert isinstance(result.front, Front)
        assert len(result.front) == len(result.front.filter()) > 0
        steps = result.history["step"]
        assert (np.diff(steps) > 0).all()
        assert steps[-1] == result.train_steps <= self.total_steps
        assert result.eval_steps > 0
        assert result.seed == 0
        assert result.config
        assert result.versions

    def test_save_and_load(self, tmp_path: Path) -> None:
        """A loaded agent has the same front and acts the same."""
        agent = self.make_agent(0)
        agent.train(self.total_steps)
        agent.save(tmp_path / "agent")
        again = self.load_agent(tmp_path / "agent")
        np.testing.assert_array_equal(again.front().points, agent.front().points)
        obs = self.observation(agent)
        for weights in np.eye(agent.front().points.shape[1]):
            np.testing.assert_array_equal(again.act(obs, weights), agent.act(obs, weights))

    @pytest.mark.parametrize("stops", [[1], [2, 5]])
    def test_resumed_training_is_the_uninterrupted_one(self, tmp_path: Path, stops: list[int]) -> None:
        """Stopping and resuming changes neither front nor history."""
        whole = self.make_agent(0).train(self.total_steps, run=tmp_path / "whole")
        resume = False
        for count in stops:
            self.make_agent(0).train(
                self.total_steps, run=tmp_path / "parts", resume=resume, callback=_stop_after(count)
            )
            assert RunDir.open(tmp_path / "parts").status == "interrupted"
            resume = True
        parts = self.make_agent(0).train(self.total_steps, run=tmp_path / "parts", resume=True)
        assert (tmp_path / "parts" / "front.csv").read_bytes() == (tmp_path / "whole" / "front.csv").read_bytes()
        np.testing.assert_array_equal(parts.history["hv"], whole.history["hv"])
        assert parts.eval_steps == whole.eval_steps

    def test_errors_come_before_any_work(self, tmp_path: Path) -> None:
        """An impossible budget, an untrained front and a missing run folder are refused."""
        agent = self.make_agent(0)
        for steps in (0, -5):
            with pytest.raises(MooptError, match="total_steps"):
                agent.train(steps, run=tmp_path / "never")
        assert not (tmp_path / "never").exists()
        with pytest.raises(MooptError, match="front"):
            agent.front()
        with pytest.raises(MooptError, match="resume"):
            agent.train(self.total_steps, resume=True)


def _stop_after(count: int) -> Callable[[Progress], bool]:
    seen = 0

    def callback(progress: Progress) -> bool:
        nonlocal seen
        seen += 1
        return seen < count

    return callback
