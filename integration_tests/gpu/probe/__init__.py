"""scripts/gpu_probe: what is asked of a machine with a GPU, in blocks, in the order of what is worth most."""
