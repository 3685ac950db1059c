"""Where tensors live."""

import torch

from moopt.runs.errors import MooptError


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the torch device that a name stands for.

    Args:
        device: ``auto`` (CUDA if there is one, else the CPU), ``cpu``, ``cuda``, ``cuda:1``, ...

    Raises:
        MooptError: The name is unknown, or this machine or this build of torch has no such device.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].strip()
        if "device type at start" in reason:
            known = "choose from auto, cpu, cuda, cuda:1, ..., mps"
            raise MooptError(f"unknown device {str(device)!r}; {known}") from None
        raise MooptError(f"device {str(device)!r} cannot be used here: {reason}; auto takes what there is") from None
    return resolved
