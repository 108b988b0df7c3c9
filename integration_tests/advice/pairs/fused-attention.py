from programs import MENDED, Gpt, tokens, train

train(Gpt(fused=MENDED), tokens(4, 512), half=True)
