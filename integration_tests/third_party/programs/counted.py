"""What programs of third parties are held against: PyTorch's own count of FLOP, of a program's first step, and its own
peak of memory.

    for i in range(steps):
        with counted(i):
            ...             # a whole step

The first step is counted; rfinject leaves it out (--skip 1), since the counter is in its way. A trainer of a package enters
through `CountedStep`. Two lines are printed:

    flop {"products": 1, "convolutions": 2, "attention": 3, "scores": 4, "backward_scores": 5}
    peak 6

Scores are the elements of attention's b x h x s_q x s_k. FlopCounterMode counts attention's products only, rfinject 4 FLOP
for each score and 5 in the backward as well.
"""
import atexit
import contextlib
import json
import math

import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry


def convolution_backward(grad_out, x, weight, _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups,
                         output_mask, out_shape=None, **_):
    """2 per multiply-add, of either gradient. FlopCounterMode's own formula counts the weight's `groups` times."""
    return 2 * math.prod(x if transposed else grad_out) * math.prod(weight[1:]) * sum(output_mask[:2])


class _Counter:
    def __init__(self):
        self._scores = {"scores": 0, "backward_scores": 0}
        mapping = {operator: self._counting_scores(operator, formula) for operator, formula in flop_registry.items()
                   if "scaled_dot_product" in str(operator)}
        mapping[torch.ops.aten.convolution_backward] = convolution_backward
        self.mode = FlopCounterMode(display=False, custom_mapping=mapping)

    def _counting_scores(self, operator, formula):
        backward = "backward" in str(operator)

        def count(*operands, **named):
            first = 1 if backward else 0
            query, key = operands[first:first + 2]
            if query.shape[1] != key.shape[1]:  # grouped queries, which the formula of torch 2.6 refuses: as if not grouped
                operands = list(operands)
                for i in (first + 1, first + 2):
                    batch, _, *rest = operands[i].shape
                    operands[i] = torch.empty((batch, query.shape[1], *rest), device="meta")
            scores = query.shape[:-1].numel() * key.shape[-2]
            self._scores["backward_scores" if backward else "scores"] += scores
            return formula(*operands, **named)
        count._get_raw = True  # operands as they are, not their shapes
        return count

    def tell(self):
        flop = {"products": 0, "convolutions": 0, "attention": 0}
        for operator, count in self.mode.get_flop_counts().get("Global", {}).items():
            name = str(operator)
            flop["attention" if "attention" in name else "convolutions" if "convolution" in name else "products"] += count
        print(f"flop {json.dumps(flop | self._scores)}", flush=True)


class CountedStep:
    """Counts from `begin` to `end`, once."""

    def __init__(self):
        self._counter = None
        self._done = False

    def begin(self):
        if not self._done and self._counter is None:
            self._counter = _Counter()
            self._counter.mode.__enter__()

    def end(self):
        if self._counter is not None and not self._done:
            self._counter.mode.__exit__(None, None, None)
            self._counter.tell()
            self._done = True


@contextlib.contextmanager
def counted(step):
    if step > 0:
        yield
        return
    first = CountedStep()
    first.begin()
    yield
    first.end()


@atexit.register
def _tell_peak():
    if torch.cuda.is_initialized():
        print(f"peak {max(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count()))}", flush=True)
