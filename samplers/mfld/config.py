"""Settings of the mean-field Langevin methods; imports nothing heavy so that the command line starts fast."""

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


@dataclass(frozen=True, kw_only=True)
class ParetoMFLDConfig:
    """Settings of `ParetoMFLD`."""

    n_particles: int = 100
    """Number of particles: the size of the front at the end."""
    step_size: float = 0.15
    """Step size in units of the box, at the start."""
    final_step: float = 0.005
    """Factor of the step size at the end."""
    tau: float = 0.1
    """Softness of the maximum at the start: how many particles share a direction."""
    final_tau: float = 0.003
    """Softness at the end."""
    temperature: float = 1e-5
    """Temperature of the Langevin noise at the start; it falls to 0 in a straight line."""
    eps: float = 0.05
    """Share of the mean scalarization, which moves particles that are the best nowhere."""
    n_directions: int = 512
    """Directions per step, drawn anew."""
    preconditioner: Literal["adam", "none"] = "adam"
    """Adam on the drift, or the plain mean-field Langevin step."""
    birth_every: int = 10
    """Steps between births and deaths; 0 for none."""
    birth_fraction: float = 0.05
    """Share of the particles that is replaced each time."""
    birth_until: float = 0.9
    """Share of the run after which there are no more births and deaths."""
    jitter: float = 0.01
    """Noise on the copies, in units of the box."""
    mutation: float = 0.0
    """Probability that a coordinate of a copy jumps; it helps on problems with many local optima."""
    jump: float = 0.05
    """Scale of the jumps, in units of the box."""
    crossover: float = 0.0
    """Probability that a coordinate of a copy comes from another good particle; for many local optima."""


MULTIMODAL = ParetoMFLDConfig(
    step_size=0.002,
    final_step=0.3,
    tau=0.03,
    birth_every=1,
    birth_fraction=0.5,
    jitter=0.0,
    mutation=0.1,
    crossover=0.5,
)
"""Settings for many local optima: small gradient steps, and at every step half of the particles are replaced by crossed
and mutated copies of the better half. That is an evolutionary method with gradients more than a Langevin one."""
