from programs import MENDED, Gpt, tokens, train

train(Gpt(), tokens(1, 64), set_to_none=MENDED)
