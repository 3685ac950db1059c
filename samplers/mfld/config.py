"""Settings of the mean-field Langevin estimators; imports nothing heavy so that the command line starts fast."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class MFLDConfig:
    """Settings of `MFLDRegressor` and `MFLDClassifier`; validation chooses from lists of scale and temperature."""

    n_particles: int = 200
    """Width: number of particles."""
    scale: tuple[float, ...] = (2.0, 4.0, 8.0)
    """Candidate output scales. Larger is lazier: it fits faster and learns less structure."""
    temperature: tuple[float, ...] = (1e-4, 1e-3)
    """Candidate temperatures 1 / beta of the noise."""
    weight_decay: float = 1e-3
    """Strength of the quadratic confinement of the particles (not on the sphere)."""
    step_size: float = 0.1
    """Step size; lowered to what is stable at each scale."""
    n_steps: int = 1000
    """Steps of each stage (choice, then final fit)."""
    activation: Literal["relu", "tanh", "sclip"] = "relu"
    """Activation of the units."""
    manifold: Literal["euclidean", "sphere"] = "euclidean"
    """Where the first-layer weights live."""
    schedule: Literal["constant", "halving", "geometric", "log"] = "constant"
    """Annealing: halving halves temperature and weight decay in 6 rounds, geometric takes the temperature to a
    hundredth, log cools like 1 / log t and is quiet for the last fifth."""
    gradient: Literal["full", "minibatch", "svrg"] = "full"
    """Gradient over all rows, a minibatch, or SVRG."""
    batch_size: int = 256
    """Rows per minibatch."""
    scaling: Literal["global", "feature", "none"] = "global"
    """Centre the inputs and divide by one common scale (keeps their spectrum), or by one per feature, or leave them."""
    validation_fraction: float = 0.2
    """Share of the rows held out for the choice of scale, temperature and number of steps."""
    early_stopping: bool = True
    """Choose the number of steps on the held-out rows too."""
    refit: bool = True
    """After the choice fit once more on all rows; else keep the chosen candidate."""
