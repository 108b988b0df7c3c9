"""Workers of a data loader are forked, another process is spawned; `exit` leaves by os._exit."""
import multiprocessing
import os
import sys

import torch


def spawned(queue):
    queue.put((torch.cuda.get_device_name(), torch.ones(3).cuda().cpu().tolist()))


if __name__ == "__main__":
    model = torch.nn.Linear(8, 8).cuda()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(16, 8)), 4, num_workers=2,
                                         pin_memory=True)
    for (batch,) in loader:
        model(batch.cuda(non_blocking=True)).sum().backward()
    if len(sys.argv) > 1:
        os._exit(7)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=spawned, args=(queue,))
    process.start()
    name, values = queue.get(timeout=300)
    process.join()
    assert name == torch.cuda.get_device_name() and values == [1, 1, 1] and process.exitcode == 0
    print("workers ok")
