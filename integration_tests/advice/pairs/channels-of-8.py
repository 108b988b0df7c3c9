from programs import MENDED, ConvNet, images, train

train(ConvNet(128 if MENDED else 124), images(32), half=True)
