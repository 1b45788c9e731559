"""Monte Carlo arithmetic: what float32's roundings cost a computation, measured in float64."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Rounding(TorchDispatchMode):
    """Moves every float64 operand of every operation, forward and backward, by a random relative error of
    at most 2^-24, which is float32's.

    The spread of a result over a few seeds is the error that float32 must be expected to have in it, on any
    processor: a gradient that is 0 in exact arithmetic has the size of the rounding errors of the terms that
    cancel in it, not 0. Source: D. S. Parker, "Monte Carlo Arithmetic", UCLA CSD-970002, 1997.
    """

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def moved(self, value, argument):
        # Views and operations in place need the tensor itself; batch norms don't declare theirs.
        if argument.alias_info is not None or argument.name in ("running_mean", "running_var"):
            return value
        if isinstance(value, (list, tuple)):
            return [self.moved(element, argument) for element in value]
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
            return value
        error = torch.rand(value.shape, generator=self.generator, dtype=torch.float64)
        return error.mul_(2**-23).add_(1 - 2**-24).mul_(value)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        pairs = zip(args, function._schema.arguments)
        return function(*(self.moved(value, argument) for value, argument in pairs), **(kwargs or {}))
