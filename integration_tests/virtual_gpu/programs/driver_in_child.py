"""A child of fork may ask the driver: its lock is free there, also while other threads of the parent hold it."""
import ctypes
import os
import signal
import threading

import torch

torch.ones(1).cuda()
driver = ctypes.CDLL("libcuda.so.1")
ended = False


def busy():
    while not ended:
        driver.cuCtxSynchronize()


threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
codes = set()
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # ends a child that waits for ever
        driver.cuCtxSynchronize()
        os._exit(0)
    codes.add(os.waitpid(pid, 0)[1])
ended = True
for thread in threads:
    thread.join()
print("children", codes)
