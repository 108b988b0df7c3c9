"""The words behind an interpreter that start torchrun in the tests."""

import random
import socket

# Below what the kernel gives to whoever asks for any port (Linux: from 32768), so that no other connection of the machine
# is given it before the job listens there.
PORTS = range(10000, 32768)


def unused_port():
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def torchrun(processes, log_folder, *options):
    """Output is redirected and teed, because torchrun 1.13 does not start under Python 3.11 otherwise (that Python does not
    iterate over its enum of "no redirection", nor over "all"). An address and a port are given, because --standalone takes
    the host's full name, which may lead nowhere, and always the same port."""
    return ["-m", "torch.distributed.run", "--master_addr", "127.0.0.1", "--master_port", unused_port(),
            "--nproc_per_node", processes, "--log_dir", log_folder, "-r", "1", "-t", "1", *options]
