"""DistributedDataParallel takes it that every step uses the same parameters"""
# write: static_graph=True, for DistributedDataParallel
option_change("static_graph", True, [torch.nn.parallel.DistributedDataParallel])
