#!/usr/bin/env python3
"""Trains torchvision models for two steps and counts the operators that got no layer. By hand, for any torch:

    RFINJECT_TORCH_HARNESS=build/release/lib/librfinject_torch_harness.so python3 integration_tests/torch/models.py
"""

import collections
import sys

import torch
import torchvision

import torch_binding as binding

NAMES = sys.argv[1:] or ['resnet18', 'densenet121', 'mobilenet_v2', 'vit_b_16', 'swin_t']


def main():
    words, missing = binding.bind()
    print('torch', torch.__version__, 'torchvision', torchvision.__version__, ' '.join(sorted(words)), '|', missing)
    binding.watch_modules()
    for name in NAMES:
        torch.manual_seed(0)
        model = getattr(torchvision.models, name)()
        size = 224 if name == 'vit_b_16' else 64
        criterion = torch.nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        binding.name_modules(model=model, loss=criterion)
        inputs, labels = torch.randn(2, 3, size, size), torch.tensor([0, 1])
        binding.take()
        for _ in range(2):
            loss = criterion(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        counts = collections.Counter()
        without = collections.Counter()
        nodeless = 0
        for op in binding.take():
            counts[op.phase] += 1
            if op.layer == '-' and op.phase in ('forward', 'backward', 'recompute'):
                without[(op.phase, op.name, op.node)] += 1
            if op.phase == 'backward' and op.node == '-':
                nodeless += 1
            if op.phase == 'other':
                without[(op.phase, op.name, op.node)] += 1
        print('%-14s' % name, dict(counts), 'backward without node', nodeless, 'without layer', dict(without),
              binding.diagnostics())


if __name__ == '__main__':
    main()
