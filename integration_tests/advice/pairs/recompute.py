from torch.utils.checkpoint import checkpoint

from programs import MENDED, Gpt, tokens, train

model = Gpt()
if not MENDED:
    model.run = lambda block, x: checkpoint(block, x, use_reentrant=False)
train(model, tokens())
