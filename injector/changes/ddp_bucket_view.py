"""DistributedDataParallel's buckets are the gradients' own memory"""
# write: gradient_as_bucket_view=True, for DistributedDataParallel
option_change("gradient_as_bucket_view", True, [torch.nn.parallel.DistributedDataParallel])
