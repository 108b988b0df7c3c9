"""Meters and what several processes do together, as torchvision's references have them."""
import os
import time

import torch
import torch.distributed as dist


class SmoothedValue:
    """The latest values of a series, and its average"""

    def __init__(self, fmt="{value:.4f} ({global_avg:.4f})"):
        self.fmt, self.value, self.total, self.count = fmt, 0.0, 0.0, 0

    def update(self, value, n=1):
        self.value = value
        self.count += n
        self.total += value * n

    @property
    def global_avg(self):
        return self.total / max(1, self.count)

    def __str__(self):
        return self.fmt.format(value=self.value, global_avg=self.global_avg)


class MetricLogger:

    def __init__(self):
        self.meters = {}

    def update(self, **values):
        for name, value in values.items():
            self.meters.setdefault(name, SmoothedValue()).update(value.item() if isinstance(value, torch.Tensor) else value)

    def log_every(self, iterable, print_freq, header):
        begun = time.time()
        for i, row in enumerate(iterable):
            yield row
            if i % print_freq == 0:
                meters = "  ".join(f"{name}: {meter}" for name, meter in self.meters.items())
                print(f"{header} [{i}/{len(iterable)}] {meters} time: {time.time() - begun:.3f}")


class ExponentialMovingAverage(torch.optim.swa_utils.AveragedModel):
    """An average of the weights, with more weight on the late ones"""

    def __init__(self, model, decay, device="cpu"):

        def ema_avg(avg_model_param, model_param, num_averaged):
            return decay * avg_model_param + (1 - decay) * model_param

        super().__init__(model, device, ema_avg, use_buffers=True)


def accuracy(output, target, topk=(1,)):
    with torch.inference_mode():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target[None])
        return [correct[:k].flatten().sum(dtype=torch.float32) * (100.0 / target.size(0)) for k in topk]


def init_distributed_mode(args):
    args.distributed = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    if not args.distributed:
        print("Not using distributed mode")
        return
    args.gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(args.gpu)
    dist.init_process_group(backend="nccl", init_method=args.dist_url, world_size=int(os.environ["WORLD_SIZE"]),
                            rank=int(os.environ["RANK"]))


def save_on_master(*args, **kwargs):
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save(*args, **kwargs)
