from programs import MENDED, Gpt, tokens, train

train(Gpt(), tokens(), half=MENDED)
